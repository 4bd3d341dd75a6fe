package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// Hop is a channel that leaves a switch.
type Hop = lft.Hop

// HopOf returns the channel that leaves port p of a switch, without VL and LID.
func HopOf(f *fabric.Fabric, p fabric.PortID) Hop { return lft.HopOf(f, p) }

// Finding is one way in which tables break a rule.
type Finding struct {
	Rule     string      `json:"rule"`
	Severity Severity    `json:"severity"`
	Message  string      `json:"message"`
	Switch   fabric.GUID `json:"switch"` // 0 if it is not about one switch
	LID      fabric.LID  `json:"lid"`    // 0 if it is not about one LID
	// Count is the number of pairs, LIDs, switches, channels or whatever the
	// rule counts.
	Count   int64 `json:"count"`
	Witness []Hop `json:"witness"` // never nil
	// Ports are the ports that the finding is about, if it is not about the path
	// of a packet.
	Ports []Endpoint `json:"ports,omitempty"`
	// Fingerprint identifies the finding across runs; see SetFingerprints.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Waiver is set if the finding is known and does not count for now.
	Waiver *Waiver `json:"waiver,omitempty"`
	// Cause is the Text of the Cause that has the finding; "" if it is the same as Message.
	Cause string `json:"cause,omitempty"`
	// File and Line are the place in the input, if a reader made the finding;
	// else "" and 0.
	File string `json:"-"`
	Line int    `json:"-"`
	more bool   // stands for findings left out, and comes last
}

// IsRest returns true if the finding stands for those of its rule that are left out.
func (x *Finding) IsRest() bool { return x.more }

// Pairs counts ordered pairs of a port and a LID, by the constants LostHosts and so on.
type Pairs [3]int64

// What Pairs counts.
const (
	LostHosts       = iota // pairs of hosts, routers and the like
	LostAggregation        // one is an aggregation node, none a switch
	LostManagement         // one is port 0 of a switch
)

// Cause is one thing that is wrong, at a cable, a port, a switch or a rule of the tables, with all
// findings that follow from it.
type Cause struct {
	Rule     string // of the gravest finding, like the next two
	Severity Severity
	Waiver   *Waiver
	Text     string      // one line; the message of the finding if there is one
	Follows  []string    // lines on what follows
	Pairs    Pairs       // that cannot talk because of it
	Routes   int64       // that cross a slow cable, both directions together
	Findings []int       // indices in Result.Findings, in order
	Switches []SwitchRef // where it is, if Text does not name all of them
}

// NewFinding makes a finding of a rule in rules.
func NewFinding(rules []Rule, rule string, count int, format string, args ...any) Finding {
	known, _ := FindRule(rule, rules)
	return Finding{Rule: rule, Severity: known.Severity, Count: int64(count), Message: fmt.Sprintf(format, args...), Witness: []Hop{}}
}

// Undecided is a rule that cannot be decided, as the input is incomplete:
// there may be findings that do not show.
type Undecided struct {
	Rule   string `json:"rule"`
	Reason string `json:"reason"` // what is missing
}

// Endpoint is a port of a node of any type.
type Endpoint struct {
	Node fabric.GUID    `json:"node"` // 0 for a node that a cabling plan names and the fabric lacks
	Name fabric.Name    `json:"name"`
	Port fabric.PortNum `json:"port"` // 0: the node, or an unknown port of it
	// Label is the port's, see fabric.Fabric.Label.
	Label string `json:"label,omitempty"`
}

// EndpointOf returns the Endpoint of port p.
func EndpointOf(f *fabric.Fabric, p fabric.PortID) Endpoint {
	n := f.Owner(p)
	return Endpoint{Node: f.Node(n).GUID, Name: f.Name(n), Port: f.Num(p), Label: f.Label(p)}
}

// EndpointsOf returns the Endpoint of each port.
func EndpointsOf(f *fabric.Fabric, ports ...fabric.PortID) []Endpoint {
	return text.Each(ports, func(p fabric.PortID) Endpoint { return EndpointOf(f, p) })
}

// String returns "name"[port] with the port's label, or "name" without a port.
func (e Endpoint) String() string {
	if e.Port == 0 {
		return e.Name.String()
	}
	return e.Name.At(e.Port, e.Label)
}

// Unquoted returns String without quotation marks.
func (e Endpoint) Unquoted() string { return strings.ReplaceAll(e.String(), `"`, "") }

// SwitchRef identifies a switch.
type SwitchRef struct {
	Switch fabric.GUID `json:"switch"`
	Name   fabric.Name `json:"name"`
}

// SwitchOf returns the SwitchRef of switch s.
func SwitchOf(f *fabric.Fabric, s fabric.NodeID) SwitchRef {
	return SwitchRef{f.Node(s).GUID, f.Name(s)}
}

// Cable is a cable in one direction.
type Cable struct {
	From Endpoint `json:"from"`
	To   Endpoint `json:"to"`
	Rate int      `json:"rate_mbps"` // data rate; 0 unknown
}

// CableOf returns the cable at port p, in the direction from p.
func CableOf(f *fabric.Fabric, p fabric.PortID) Cable {
	return Cable{EndpointOf(f, p), EndpointOf(f, f.Peer(p)), f.Link(p).Mbps()}
}

// Waiver excuses a finding for some time.
type Waiver struct {
	Until  string `json:"until"` // last day, as 2006-01-02
	Reason string `json:"reason"`
}

// Collector makes findings of some rules, up to a limit for each.
type Collector struct {
	findings *[]Finding
	limit    int64
	rules    []Rule
	counts   []struct{ made, left, count int64 } // by index in rules
	told     map[int32]bool                      // channels of loops that were reported
}

// NewCollector makes a Collector that appends to findings.
func NewCollector(findings *[]Finding, rules []Rule, limit int) *Collector {
	return &Collector{findings, int64(limit), rules, make([]struct{ made, left, count int64 }, len(rules)), make(map[int32]bool)}
}

// Add adds a finding that stands for count, and calls fill to fill it in. Beyond the limit it only
// counts findings.
func (c *Collector) Add(rule string, count int64, fill func(*Finding)) {
	i := slices.IndexFunc(c.rules, func(r Rule) bool { return r.Name == rule })
	at := &c.counts[i]
	if at.made == c.limit {
		at.left++
		at.count += count
		return
	}
	at.made++
	f := Finding{Rule: rule, Severity: c.rules[i].Severity, Count: count, Witness: []Hop{}}
	fill(&f)
	*c.findings = append(*c.findings, f)
}

// addLoops adds a finding for each set of channels that wait for each other, except sets with a
// channel of a set that was added before. It returns the number of sets.
func (c *Collector) addLoops(rule string, loops [][]int32, fill func(f *Finding, members []int32)) int {
	for _, members := range loops {
		if !slices.ContainsFunc(members, func(ch int32) bool { return c.told[ch] }) {
			c.Add(rule, int64(len(members)), func(f *Finding) { fill(f, members) })
		}
	}
	for _, members := range loops {
		for _, ch := range members {
			c.told[ch] = true
		}
	}
	return len(loops)
}

// Close adds a finding for each rule of which findings were left out.
func (c *Collector) Close() {
	for i, at := range c.counts {
		if at.left > 0 {
			*c.findings = append(*c.findings, Finding{
				Rule: c.rules[i].Name, Severity: c.rules[i].Severity, Count: at.count, Witness: []Hop{}, more: true,
				Message: fmt.Sprintf("and %d more findings of this rule, for %d %s", at.left, at.count, c.rules[i].Count),
			})
		}
	}
}

// tellOfCycle fills in a finding of channels that wait for each other, whose Witness, a cycle of
// them, is set. cycle describes the Witness; shortest is false if there may be a shorter cycle.
func (f *Finding) tellOfCycle(channels int, shortest bool, cycle string) {
	f.Switch, f.LID = f.Witness[0].Switch, f.Witness[0].LID
	found := "shortest"
	if !shortest {
		found = "shortest found in bounded time"
	}
	f.Message = fmt.Sprintf("%s wait for each other; %s cycle, %s: %s",
		text.Count(channels, "channel", "channels"), found, text.Count(len(f.Witness), "channel", "channels"), cycle)
}

// hopOf returns the Hop of port num of a switch, even if the switch lacks the port.
func hopOf(f *fabric.Fabric, s fabric.NodeID, num fabric.PortNum) Hop {
	if num <= f.Node(s).NumPorts {
		return HopOf(f, f.Port(s, num))
	}
	return Hop{Switch: f.Node(s).GUID, Name: f.Name(s), Port: num}
}

// fateBy describes why packets that a switch sends by port num, which it may lack, do not arrive.
// choice tells how the switch may choose the port; "" if it has no choice.
func fateBy(f *fabric.Fabric, s fabric.NodeID, num fabric.PortNum, choice string) string {
	can, more, lids := "", "s", lidOf
	if choice != "" {
		can, more, choice = "can ", "", " ("+choice+")"
		lids = func(*fabric.Fabric, fabric.PortID) string { return "another LID" }
	}
	n := f.Node(s)
	if num > n.NumPorts {
		return fmt.Sprintf("%ssend%s it to port %d%s and has ports 1 to %d", can, more, num, choice, n.NumPorts)
	}
	out := f.Port(s, num)
	switch peer := f.Peer(out); {
	case num == fabric.ManagementPort:
		return fmt.Sprintf("%stake%s it in at port 0%s, which has %s", can, more, choice, lids(f, out))
	case peer == fabric.NoPort:
		return fmt.Sprintf("%ssend%s it to port %s%s, which has no cable", can, more, f.PortText(out), choice)
	default:
		return fmt.Sprintf("%ssend%s it by port %s%s to %s, which has %s", can, more, f.PortText(out), choice, f.PortName(peer), lids(f, peer))
	}
}

func lidOf(f *fabric.Fabric, port fabric.PortID) string {
	switch {
	case f.LID(port) == 0:
		return "no LID"
	case f.LMC(port) > 0:
		return fmt.Sprintf("LIDs %d to %d", f.LID(port), int(f.LID(port))+1<<f.LMC(port)-1)
	}
	return fmt.Sprintf("LID %d", f.LID(port))
}

// sourceName returns the name of an end port that sends.
func sourceName(f *fabric.Fabric, port fabric.PortID) string {
	if n := f.Owner(port); f.IsSwitch(n) {
		return switchName(f, n) + " itself"
	}
	return f.PortName(port)
}

// lidName returns the name of a LID, with its port.
func lidName(f *fabric.Fabric, lid fabric.LID) string {
	return fmt.Sprintf("LID %d of %s", lid, f.PortName(f.LIDPort(lid)))
}

// switchName returns the name of a switch for messages.
func switchName(f *fabric.Fabric, s fabric.NodeID) string {
	return fmt.Sprintf("switch %q (%s)", f.Name(s).Text, f.Node(s).GUID)
}

// rotate returns a cycle from the switch with the lowest GUID on.
func rotate(cycle []Hop) []Hop {
	low := 0
	for i := range cycle {
		if cycle[i].Switch < cycle[low].Switch {
			low = i
		}
	}
	return slices.Concat(cycle[low:], cycle[:low])
}

// formatCycle describes a cycle of channels, the first again at the end, and how switches choose
// them. lids adds the LID that leads from each to the next, vls the VLs.
func formatCycle(hops []Hop, lids, vls bool) string {
	const most = 12
	var b strings.Builder
	name := func(h Hop) {
		b.WriteString(h.String())
		if vls {
			fmt.Fprintf(&b, " VL %d", h.VL)
		}
	}
	for i, h := range hops {
		if i == most && len(hops) > most+1 {
			fmt.Fprintf(&b, "%d more -> ", len(hops)-most)
			break
		}
		name(h)
		switch {
		case lids && h.Choice != "":
			fmt.Fprintf(&b, " (%s, %s)", h.Target(), h.Choice)
		case lids:
			fmt.Fprintf(&b, " (%s)", h.Target())
		case h.Choice != "":
			fmt.Fprintf(&b, " (%s)", h.Choice)
		}
		b.WriteString(" -> ")
	}
	name(hops[0])
	return b.String()
}

// formatPath describes a path from its first channel to its last.
func formatPath(hops []Hop) string {
	return text.Ends(text.Each(hops, Hop.String), 12, " -> ", "%d more")
}
