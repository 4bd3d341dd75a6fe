// Package cause groups findings by what caused them: one dead cable under
// static tables makes a hundred findings of unreachable LIDs. Printers show
// causes, the most harmful first; scripts get the findings. It makes no
// promise to other modules.
package cause

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// lossRules are the rules about packets that do not arrive. The cause of such a finding is the
// place where they are lost, the end of its witness.
var lossRules = []string{
	verify.UnicastUnreachable, verify.Misdelivered, verify.UnicastLoop,
	verify.ManagementUnreachable, verify.ManagementLoop, verify.DeadEntry, verify.EmptyTable,
}

// hostRules counts the rules at the head of lossRules about packets between CA and router ports.
const hostRules = 3

// Group finds the causes of the findings of r, which are about s. It sets
// r.Causes, and Cause of each finding whose message is not the whole cause.
// Call it once all findings are there. It takes O(findings), and O(switches x
// LIDs) if packets are lost or a cable is slow. Errors: ctx's.
func Group(ctx context.Context, r *verify.Result, s *state.State) error {
	g := grouper{r: r, f: s.Fabric, t: s.Tables, joint: make(map[*loss][]*loss), at: make(map[string]int), by: make(map[string]*loss)}
	if s.Tables != nil && slices.ContainsFunc(r.Findings, func(x verify.Finding) bool { return slices.Contains(lossRules, x.Rule) }) {
		n := s.Fabric.NumSwitches()
		w := &walker{f: s.Fabric, t: s.Tables, end: make([]*loss, n), state: make([]uint8, n), found: make(map[spot]*loss)}
		g.losses = w.findLosses()
		g.pairCables(w)
		g.joinRows()
	}
	r.Unicast.Aggregation = 0
	for _, x := range g.losses {
		if x.fate != loops {
			r.Unicast.Aggregation += x.pairs[verify.LostAggregation]
		}
	}
	g.groupLosses()
	g.groupRest()
	if err := g.countRoutes(ctx, s); err != nil {
		return err
	}
	if s.Tables != nil {
		g.tellMixture(s.Tables)
	}
	r.CauseSwitches = nil
	for i := range g.list {
		c := &g.list[i]
		slices.Sort(c.Findings)
		if len(c.Switches) > 0 {
			if r.CauseSwitches == nil {
				r.CauseSwitches = make(map[string][]verify.SwitchRef)
			}
			r.CauseSwitches[c.Text] = c.Switches
		}
		if len(c.Findings) == 1 && c.Text == r.Findings[c.Findings[0]].Message {
			continue
		}
		for _, k := range c.Findings {
			if x := &r.Findings[k]; !x.IsRest() { // a finding about the rest has many causes
				x.Cause = cmp.Or(x.Cause, c.Text)
			}
		}
	}
	slices.SortStableFunc(g.list, func(a, b verify.Cause) int {
		return cmp.Or(
			cmp.Compare(b.Severity, a.Severity),
			slices.Compare(b.Pairs[:], a.Pairs[:]),
			cmp.Compare(b.Routes, a.Routes),
			cmp.Compare(a.Findings[0], b.Findings[0]),
		)
	})
	isWaived := func(c verify.Cause) bool { return c.Waiver != nil }
	r.Causes = append(text.Where(g.list, func(c verify.Cause) bool { return !isWaived(c) }), text.Where(g.list, isWaived)...)
	return nil
}

// grouper makes causes of findings.
type grouper struct {
	r      *verify.Result
	f      *fabric.Fabric
	t      *lft.Tables // nil for none
	losses []*loss
	joint  map[*loss][]*loss // by loss: all with its cause, in order; nil if it is alone
	list   []verify.Cause
	at     map[string]int   // by key: index in list
	by     map[string]*loss // by key of a cause that is a loss: the loss
}

// add adds a finding to the cause with this key; waived findings have a cause of their own.
func (g *grouper) add(key string, finding int) {
	x := &g.r.Findings[finding]
	if x.Waiver != nil {
		key += " waived"
	}
	i, ok := g.at[key]
	if !ok {
		i = len(g.list)
		g.at[key] = i
		g.list = append(g.list, verify.Cause{Rule: x.Rule, Severity: x.Severity, Waiver: x.Waiver, Text: x.Message})
	}
	c := &g.list[i]
	if c.Findings = append(c.Findings, finding); x.Severity > c.Severity {
		c.Rule, c.Severity = x.Rule, x.Severity
	}
}

// lossKey returns the key of a loss's cause: that of the first of the losses that share the cause.
func (g *grouper) lossKey(x *loss) string {
	if all := g.joint[x]; all != nil {
		x = all[0]
	}
	return fmt.Sprintf("loss %d %d %d", x.s, x.port, x.fate)
}

// joinRows gives switches that lack entries for the same LIDs one cause, and switches without any
// entries another one.
func (g *grouper) joinRows() {
	alike := make(map[string][]*loss)
	for _, x := range g.losses {
		if x.fate == noEntry {
			key := fmt.Sprint(x.lids)
			if !g.hasEntries(x.s) {
				key = "none"
			}
			alike[key] = append(alike[key], x)
		}
	}
	for _, list := range alike {
		if len(list) > 1 {
			for _, x := range list {
				g.joint[x] = list
			}
		}
	}
}

// groupLosses makes a cause of each place where packets are lost.
func (g *grouper) groupLosses() {
	for i := range g.r.Findings {
		x := &g.r.Findings[i]
		if at := g.lossOf(x); at != nil {
			key := g.lossKey(at)
			g.by[key] = at
			g.add(key, i)
		}
	}
	// A LID's finding names one place where packets are lost: make causes of others too.
	for _, at := range g.losses {
		key, rules := g.lossKey(at), lossRules[:hostRules]
		if at.pairs[verify.LostHosts]+at.pairs[verify.LostAggregation] == 0 {
			rules = lossRules[hostRules:]
		}
		tells := func(k int) bool { return slices.Contains(rules, g.r.Findings[k].Rule) }
		told := func(key string) bool {
			i, ok := g.at[key]
			return ok && slices.ContainsFunc(g.list[i].Findings, tells)
		}
		if at.pairs == (verify.Pairs{}) || told(key) || told(key+" waived") {
			continue
		}
		i := slices.IndexFunc(g.r.Findings, func(x verify.Finding) bool {
			_, found := slices.BinarySearch(at.lids, x.LID)
			return found && slices.Contains(rules, x.Rule)
		})
		if i < 0 {
			i = slices.IndexFunc(g.r.Findings, func(x verify.Finding) bool { return x.IsRest() && slices.Contains(rules, x.Rule) })
		}
		if i >= 0 {
			g.by[key] = at
			if known, ok := g.at[key]; !ok || !slices.Contains(g.list[known].Findings, i) {
				g.add(key, i)
			}
		}
	}
}

// lossOf returns where the packets of a finding are lost; nil if unknown.
func (g *grouper) lossOf(x *verify.Finding) *loss {
	end := spot{port: fabric.NoPath}
	guid := x.Switch
	switch {
	case !slices.Contains(lossRules, x.Rule) || x.IsRest():
		return nil
	case x.Rule == verify.EmptyTable:
	case x.Rule == verify.DeadEntry:
		end.port = x.Ports[0].Port
	case len(x.Witness) > 0:
		h := &x.Witness[len(x.Witness)-1]
		guid, end.port = h.Switch, h.Port
	default:
		return nil
	}
	s, ok := g.f.SwitchByGUID(guid)
	if !ok {
		return nil
	}
	loop := x.Rule == verify.UnicastLoop || x.Rule == verify.ManagementLoop
	i := slices.IndexFunc(g.losses, func(at *loss) bool {
		if loop {
			_, found := slices.BinarySearch(at.lids, x.LID)
			return found && at.fate == loops
		}
		return at.s == s && at.port == end.port && at.fate != loops
	})
	if i < 0 {
		return nil
	}
	return g.losses[i]
}

// describe writes the text of a cause that is loss x: what is wrong there and at losses that share
// the cause, and what follows.
func (g *grouper) describe(c *verify.Cause, x *loss) {
	all := g.joint[x]
	if all == nil {
		all = []*loss{x}
	}
	x = all[0]
	c.Pairs = verify.Pairs{}
	var lids []fabric.LID
	from := make([]bool, g.f.NumSwitches())
	for _, y := range all {
		lids = append(lids, y.lids...)
		for s, sends := range y.from {
			from[s] = from[s] || sends
		}
		for k, n := range y.pairs {
			c.Pairs[k] += n
		}
	}
	slices.Sort(lids)
	lids = slices.Compact(lids)
	names := text.Each(all, func(y *loss) string { return g.f.Name(y.s).String() })
	who, has := text.List(names, "and"), "has"
	if len(all) > 1 {
		has = "have"
	}
	if len(all) > shownSwitches {
		who = fmt.Sprintf("%s and %s", names[0], text.CountGrouped(len(all)-1, "other switch", "other switches"))
		c.Switches = text.Each(all, func(y *loss) verify.SwitchRef { return verify.SwitchOf(g.f, y.s) })
	}
	unrouted := len(all) > 1 && x.fate == noEntry && g.isUnrouted(lids)
	if unrouted {
		c.Switches = nil // all switches have it
	}
	switch {
	case x.fate == noCable && len(all) == 2:
		c.Text = fmt.Sprintf("no cable at %s and %s, most likely one that is gone, and the tables use it",
			g.f.PortName(g.f.Port(x.s, x.port)), g.f.PortName(g.f.Port(all[1].s, all[1].port)))
	case x.fate == noEntry && !g.hasEntries(x.s):
		c.Text = fmt.Sprintf("%s %s no forwarding table, or an empty one", who, has)
	case unrouted && len(lids) > named:
		c.Text = fmt.Sprintf("no switch has entries for %s LIDs, %s", text.Grouped(len(lids)), ranges(lids))
	case unrouted:
		c.Text = fmt.Sprintf("no switch has an entry for %s", lidNames(g.f, lids))
	case x.fate == noEntry && len(lids) > named:
		c.Text = fmt.Sprintf("%s %s no entries for %s LIDs, %s", who, has, text.Grouped(len(lids)), ranges(lids))
	case x.fate == noEntry:
		c.Text = fmt.Sprintf("%s %s no entry for %s", who, has, lidNames(g.f, lids))
	default:
		c.Text = x.headline(g.f, g.t)
	}
	c.Text += ": " + pairText(c.Pairs)
	senders := text.Where(g.f.Switches(), func(s fabric.NodeID) bool { return from[s] })
	switches := text.Each(senders, func(s fabric.NodeID) string { return g.f.Name(s).String() })
	if unrouted {
		c.Follows = append(c.Follows, "not routed by the subnet manager")
	}
	if x.fate == noEntry && !unrouted && g.hasEntries(x.s) && g.breaksBlocks(x) {
		c.Follows = append(c.Follows, "not whole blocks of 64 LIDs, so no failed write: a small LinearFDBTop, or a dump that is cut")
	}
	alone := len(all) == 1 && x.fate == noEntry && !x.transit && !g.hasEntries(x.s) && len(g.f.HostsOn(x.s)) > 0
	if alone {
		c.Follows = append(c.Follows, "hosts on "+names[0]+" reach no others, and no others reach them")
	}
	// If entries are missing, show the shorter list: of LIDs or of switches.
	few := x.fate == noEntry && (unrouted || len(lids) <= len(switches))
	if !alone && (x.fate != noEntry || few) && (len(lids) > named || !strings.Contains(c.Text, "(LID ")) {
		c.Follows = append(c.Follows, "cannot be reached: "+lidNames(g.f, lids))
	}
	if !alone && !few {
		c.Follows = append(c.Follows, fmt.Sprintf("from %s: %s", text.CountGrouped(len(switches), "switch", "switches"), text.Few(switches, named)))
	}
	if also := g.rules(c); also != "" {
		c.Follows = append(c.Follows, also)
	}
}

// isUnrouted reports whether no switch has entries for these LIDs, except for LIDs on itself.
func (g *grouper) isUnrouted(lids []fabric.LID) bool {
	for _, lid := range lids {
		own := g.f.Owner(g.f.LIDPort(lid))
		for s := range fabric.NodeID(g.f.NumSwitches()) {
			if s != own && lft.Entry(g.t.Row(s), lid) != fabric.NoPath {
				return false
			}
		}
	}
	return true
}

// breaksBlocks reports whether x.s has some, but not all entries of a block of 64 LIDs.
func (g *grouper) breaksBlocks(x *loss) bool {
	row := g.t.Row(x.s)
	return slices.ContainsFunc(x.lids, func(lid fabric.LID) bool {
		block := row[min(int(lid)&^63, len(row)):min(int(lid)&^63+64, len(row))]
		return slices.ContainsFunc(block, func(e fabric.PortNum) bool { return e != fabric.NoPath })
	})
}

// hasEntries reports whether a switch has any entry.
func (g *grouper) hasEntries(s fabric.NodeID) bool {
	guid := g.f.Node(s).GUID
	return !slices.ContainsFunc(g.r.Findings, func(x verify.Finding) bool { return x.Rule == verify.EmptyTable && x.Switch == guid })
}

// rules lists the rules of a cause's findings other than its own; "" if there are none.
func (g *grouper) rules(c *verify.Cause) string {
	var words []string
	for _, k := range c.Findings {
		if rule := g.r.Findings[k].Rule; rule != c.Rule && !slices.Contains(words, rule) {
			words = append(words, rule)
		}
	}
	if words == nil {
		return ""
	}
	return "also " + strings.Join(words, ", ")
}

// pairText writes how many pairs are lost, by kind.
func pairText(n verify.Pairs) string {
	var words []string
	for k, of := range []string{verify.LostHosts: " of hosts", verify.LostAggregation: " with an aggregation node at an end", verify.LostManagement: " with switches"} {
		if n[k] > 0 {
			words = append(words, text.CountGrouped(n[k], "pair", "pairs")+of)
		}
	}
	if words == nil {
		return "no pair is lost"
	}
	return text.List(words, "and") + " lost"
}

// groupRest makes causes of all other findings, and writes the texts of all causes.
func (g *grouper) groupRest() {
	done := make([]bool, len(g.r.Findings))
	for i := range g.list {
		for _, k := range g.list[i].Findings {
			done[k] = true
		}
	}
	gone := make(map[string]bool)
	for i := range g.r.Findings {
		gone[g.goneFrom(&g.r.Findings[i])] = true
	}
	for i := range g.r.Findings {
		x := &g.r.Findings[i]
		if done[i] || x.IsRest() && len(g.losses) > 0 && slices.Contains(lossRules, x.Rule) {
			continue
		}
		key := fmt.Sprint("finding ", i)
		switch {
		case g.sharesLID(x):
			key = capture.DuplicateLID
		case x.Rule == verify.Partitioned || x.Rule == verify.ManagementPartitioned || x.Rule == cabling.SplitFabric:
			key = "parts"
		case x.Rule == verify.StaleEntry:
			key = cmp.Or(g.goneFrom(x), x.Rule)
		case x.Rule == cabling.PortDown && len(x.Ports) == 1 && gone[goneKey(x.Ports[0])]:
			key = goneKey(x.Ports[0])
		case len(x.Ports) == 1 && x.Ports[0].Port != 0:
			key = fmt.Sprint(x.Rule, " ", x.Ports[0].Node, " ", x.Severity)
		case x.LID == 0 && len(x.Witness) == 0:
		case len(x.Witness) > 0 && (x.Rule == verify.SLDropped || x.Rule == verify.ManagementSLDropped || strings.HasSuffix(x.Rule, verify.AdaptiveDeadEnd)):
			end := &x.Witness[len(x.Witness)-1]
			key = fmt.Sprint(strings.TrimPrefix(x.Rule, "management-"), " ", end.Switch)
			if strings.HasSuffix(x.Rule, verify.AdaptiveDeadEnd) { // an SL-to-VL table is one cause for all ports
				key = fmt.Sprint(key, " ", end.Port)
			}
			for _, at := range g.losses { // static entries lose packets there, too
				if g.f.Node(at.s).GUID == end.Switch && at.port == end.Port && g.by[g.lossKey(at)] != nil {
					key = g.lossKey(at)
				}
			}
		}
		g.add(key, i)
	}
	for key, i := range g.at {
		c := &g.list[i]
		if at := g.by[strings.TrimSuffix(key, " waived")]; at != nil {
			g.describe(c, at)
		} else if len(c.Findings) > 1 {
			g.sum(c)
		}
	}
}

// goneKey returns the key of the cause that the owner of a LID is gone from a port.
func goneKey(e verify.Endpoint) string { return fmt.Sprint("gone ", e.Node, " ", e.Port) }

// goneFrom returns goneKey for a stale entry that leads to a port without a cable, else "".
func (g *grouper) goneFrom(x *verify.Finding) string {
	if x.Rule != verify.StaleEntry || x.IsRest() || x.Severity == verify.Note || g.t == nil || g.f.LIDPort(x.LID) != fabric.NoPort {
		return ""
	}
	if end := capture.GoneFrom(g.f, g.t, x.LID); end != fabric.NoPort {
		return goneKey(verify.EndpointOf(g.f, end))
	}
	return ""
}

// sharesLID reports whether a finding is about ports that share a LID, about one that lost its LID
// to another, or about entries that lead to such a port.
func (g *grouper) sharesLID(x *verify.Finding) bool {
	at := verify.Endpoint{Node: x.Switch}
	switch x.Rule {
	case capture.DuplicateLID:
		return true
	case verify.StaleEntry:
		if x.IsRest() || g.t == nil {
			return false
		}
		p := capture.BareEnd(g.f, g.t, x.LID)
		if p == fabric.NoPort {
			return false
		}
		at = verify.EndpointOf(g.f, p)
	case verify.UnassignedLID, verify.ManagementUnassignedLID:
		if len(x.Ports) == 1 {
			at = x.Ports[0]
		}
	default:
		return false
	}
	i := slices.IndexFunc(g.r.Findings, func(y verify.Finding) bool { return y.Rule == capture.DuplicateLID })
	return i >= 0 && slices.ContainsFunc(g.r.Findings[i].Ports, func(e verify.Endpoint) bool { return e.Node == at.Node && e.Port == at.Port })
}

// countRoutes adds to causes that are slow cables the GUID of a switch at the cable and, between
// switches, the number of static routes that cross it. Errors: ctx's.
func (g *grouper) countRoutes(ctx context.Context, s *state.State) (err error) {
	f := g.f
	var routes []int64 // by channel, from lft.ChannelLoads; nil until needed
	for i := range g.list {
		c := &g.list[i]
		x := &g.r.Findings[c.Findings[0]]
		if len(c.Findings) > 1 || x.Rule != cabling.LinkDegraded && x.Rule != cabling.LinkBelowRequired {
			continue
		}
		var ports []fabric.PortID
		for _, e := range x.Ports {
			if sw, ok := f.SwitchByGUID(e.Node); ok && e.Port <= f.Node(sw).NumPorts {
				ports = append(ports, f.Port(sw, e.Port))
			}
		}
		if len(ports) > 0 {
			at := f.Owner(ports[0])
			c.Follows = append(c.Follows, fmt.Sprintf("the GUID of %s is %s", f.Name(at), f.Node(at).GUID))
		}
		if len(ports) != 2 || s.Tables == nil {
			continue
		}
		if routes == nil {
			if routes, err = lft.ChannelLoads(ctx, f, s.Tables); err != nil {
				return err
			}
		}
		c.Routes = routes[ports[0]] + routes[ports[1]]
		c.Text += "; " + text.CountGrouped(c.Routes, "route crosses it", "routes cross it")
	}
	return nil
}

// sum fills in the text of a cause of several findings that are not about losses.
func (g *grouper) sum(c *verify.Cause) {
	first := &g.r.Findings[c.Findings[0]]
	stale := slices.DeleteFunc(slices.Clone(c.Findings), func(k int) bool { return g.r.Findings[k].Rule != verify.StaleEntry })
	if i := slices.IndexFunc(c.Findings, func(k int) bool { return g.r.Findings[k].Rule == capture.DuplicateLID }); i >= 0 {
		x := &g.r.Findings[c.Findings[i]] // it says what the others follow from
		if c.Rule, c.Text = x.Rule, x.Message; g.rules(c) != "" {
			c.Follows = []string{g.rules(c)}
		}
		return
	}
	if len(stale) > 0 {
		first = &g.r.Findings[stale[0]]
		lids := text.Each(stale, func(k int) fabric.LID { return g.r.Findings[k].LID })
		if also := g.rules(c); also != "" {
			c.Follows = []string{also}
		}
		if c.Text = first.Message; len(lids) == 1 {
			return
		}
		c.Text = fmt.Sprintf("%d LIDs with entries belong to no port with a cable: %s; %s", len(lids), ranges(lids), first.Message)
		return
	}
	if len(first.Ports) == 1 {
		at := first.Ports[0]
		ports := text.Each(c.Findings, func(k int) fabric.PortNum { return g.r.Findings[k].Ports[0].Port })
		slices.Sort(ports)
		if tail, ok := strings.CutPrefix(first.Message, at.String()+" has no "); ok {
			c.Text = fmt.Sprintf("%s[%s] have no %s", at.Name, ranges(ports), tail)
			return
		}
		c.Text = fmt.Sprintf("%s[%s]: %s", at.Name, ranges(ports), first.Message)
		return
	}
	if end := len(first.Witness) - 1; end >= 0 { // where an SL or a choice of ports is dropped
		for _, k := range c.Findings {
			kind := verify.LostHosts
			if strings.HasPrefix(g.r.Findings[k].Rule, "management-") {
				kind = verify.LostManagement
			}
			c.Pairs[kind] += g.r.Findings[k].Count
		}
		c.Text = fmt.Sprintf("%s: %s; such as %s", first.Witness[end], pairText(c.Pairs), first.Message)
		var ways []string // that an SL-to-VL table drops
		for _, k := range c.Findings {
			if _, way, ok := strings.Cut(g.r.Findings[k].Message, verify.WhoseLanes); ok && !slices.Contains(ways, way) {
				ways = append(ways, way)
			}
		}
		if packets, _, ok := strings.Cut(first.Message, ", "+verify.WhoseLanes); ok {
			c.Text = fmt.Sprintf("the SL-to-VL table of %s %s: %s", first.Witness[end].Name, text.Few(ways, named), pairText(c.Pairs))
			c.Follows = []string{"such as " + packets}
		}
		return
	}
	for _, k := range c.Findings[1:min(len(c.Findings), 1+named)] {
		c.Follows = append(c.Follows, g.r.Findings[k].Rule+": "+g.r.Findings[k].Message)
	}
	if n := len(c.Findings) - 1 - named; n > 0 {
		c.Follows = append(c.Follows, fmt.Sprintf("and %d more", n))
	}
}
