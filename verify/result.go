package verify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify/bound"
)

// Result is the result of Check. Its JSON form is the document of `ibweave
// check --format json`.
type Result struct {
	Fabric        FabricCounts           `json:"fabric"`
	Unicast       UnicastCounts          `json:"unicast"`
	Management    ManagementCounts       `json:"management"`
	CreditLoops   CreditLoopCounts       `json:"credit_loops"`
	Multicast     MulticastCounts        `json:"multicast"`
	Balance       BalanceCounts          `json:"balance"`
	Bound         *LoadBound             `json:"bound,omitempty"`          // nil if CompareBounds had none
	Adaptive      *AdaptiveCounts        `json:"adaptive,omitempty"`       // nil if no adaptive tables were checked
	Partitions    *PartitionCounts       `json:"partitions,omitempty"`     // nil if no partitions were audited
	Undecided     []Undecided            `json:"undecided"`                // sorted, each once; never nil
	Findings      []Finding              `json:"findings"`                 // sorted; never nil
	Causes        []Cause                `json:"-"`                        // of Findings, the most harmful first; nil before audit/cause groups them
	CauseSwitches map[string][]SwitchRef `json:"cause_switches,omitempty"` // by Cause of findings, if that does not name all its switches
	Verdict       string                 `json:"verdict"`                  // the worst of "errors", "undecided", "warnings" and "clean"; notes are clean
	proof         *certificateProof      // nil if unicast or multicast traffic has a credit loop

	// scale is the scale of Balance.MaxRelative. LoadOn computes loads on other scales from busiest,
	// which is nil if routes were not counted.
	scale   bound.Scale
	busiest []linkLoad
}

// FabricCounts has the size of the fabric.
type FabricCounts struct {
	Switches int        `json:"switches"`
	Systems  int        `json:"systems,omitempty"` // switches, where all with one system image GUID count once; 0 if all differ
	CAPorts  int        `json:"ca_ports"`          // CA and router ports with a cable
	Links    int        `json:"links"`             // cables, also of hosts
	MaxLID   fabric.LID `json:"max_lid"`
}

// String describes the numbers of switches, CA ports and links.
func (c FabricCounts) String() string {
	return fmt.Sprintf("%s, %s, %s", text.CountGrouped(c.Switches, "switch", "switches"), text.CountGrouped(c.CAPorts, "CA port", "CA ports"), text.CountGrouped(c.Links, "link", "links"))
}

func countFabric(f *fabric.Fabric) FabricCounts {
	n := FabricCounts{Switches: f.NumSwitches(), CAPorts: len(f.CAPorts()), Links: f.NumLinks(), MaxLID: f.MaxLID()}
	if systems := f.Systems(); len(systems) > 0 {
		n.Systems = n.Switches
		for _, chips := range systems {
			n.Systems -= len(chips) - 1
		}
	}
	return n
}

// Unverified returns the result of a fabric whose tables are not verified:
// only its size is known.
func Unverified(f *fabric.Fabric) *Result {
	return &Result{
		Fabric:      countFabric(f),
		CreditLoops: CreditLoopCounts{VLs: 1, Cycles: [][]Hop{}},
		Undecided:   []Undecided{},
		Findings:    []Finding{},
		Verdict:     VerdictClean,
		scale:       bound.ScaleOf(f),
	}
}

// countPairs counts the pairs of a fabric: see UnicastCounts and ManagementCounts.
func countPairs(f *fabric.Fabric) (unicast, management int64) {
	caLIDs, switchLIDs := countLIDs(f)
	caPorts, switches := int64(len(f.CAPorts())), int64(f.NumSwitches())
	return (caPorts - 1) * caLIDs, switches*caLIDs + caPorts*switchLIDs + (switches-1)*switchLIDs
}

// countLIDs counts the LIDs of CAs and routers, and those of switches.
func countLIDs(f *fabric.Fabric) (ca, switches int64) {
	f.EndPorts(func(port fabric.PortID) {
		if f.IsSwitch(f.Owner(port)) {
			switches += lidsOf(f, port)
		} else {
			ca += lidsOf(f, port)
		}
	})
	return ca, switches
}

func lidsOf(f *fabric.Fabric, port fabric.PortID) int64 { return int64(f.NumLIDs(port)) }

// UnicastCounts counts ordered pairs of a CA or router port and a LID of
// another such port. Each pair is delivered, unreachable or loops.
type UnicastCounts struct {
	Pairs        int64     `json:"pairs"`
	Unreachable  int64     `json:"unreachable"` // including misdelivered pairs
	Loops        int64     `json:"loops"`
	NonMinimal   int64     `json:"non_minimal"`   // delivered pairs that pass more switches than needed; without aggregation nodes
	MaxDetour    int       `json:"max_detour"`    // the most switches that such a pair passes beyond those needed
	HopHistogram Histogram `json:"hop_histogram"` // delivered pairs by switches passed
	MaxHops      int       `json:"max_hops"`      // of delivered pairs
	Misdelivered int64     `json:"misdelivered"`
	Aggregation  int64     `json:"unreachable_aggregation,omitempty"` // Unreachable pairs of aggregation nodes; 0 before audit/cause groups findings
}

// setHops sets MaxHops and HopHistogram, from delivered pairs by switches passed.
func (u *UnicastCounts) setHops(delivered Histogram) {
	for passed, n := range delivered {
		if n > 0 {
			u.MaxHops = passed
		}
	}
	u.HopHistogram = slices.Clone(delivered[:u.MaxHops+1])
}

// ManagementCounts counts ordered pairs of a port and a LID of another port,
// if one of the two ports is port 0 of a switch.
type ManagementCounts struct {
	Pairs       int64 `json:"pairs"`
	Unreachable int64 `json:"unreachable"`
	Loops       int64 `json:"loops"`
	CreditLoops int   `json:"credit_loops"` // of unicast, multicast and management traffic together
}

// CreditLoopCounts describes the channel dependency graph of delivered
// unicast pairs. A channel is one VL of a cable in one direction.
type CreditLoopCounts struct {
	Count  int     `json:"count"`  // strongly connected components with a cycle
	VLs    int     `json:"vls"`    // used by packets, also of management; at least 1
	Cycles [][]Hop `json:"cycles"` // one witness each, at most Options.Witnesses; never nil
	// Channels counts the used channels that leave switches, also to CAs;
	// Dependencies counts those between two of them. Channels from CAs into
	// switches begin all paths and can be in no cycle: they do not count.
	Channels     int `json:"channels"`
	Dependencies int `json:"dependencies"`
}

// MulticastCounts is about multicast packets, all 0 if no multicast tables
// are checked. Check follows a packet of each sender of each group: each
// receiver except the sender must get one copy, and no other end port any.
type MulticastCounts struct {
	Groups     int   `json:"groups"`     // groups, and MLIDs in the tables that have no group
	MLIDs      int   `json:"mlids"`      // of groups, or in the tables
	Pairs      int64 `json:"pairs"`      // of a sender and a receiver of its packets
	Missing    int   `json:"missing"`    // pairs of a sender and a receiver that gets no copy
	Duplicates int   `json:"duplicates"` // likewise: a receiver that gets several; without packets that loop
	Loops      int   `json:"loops"`      // senders whose packets loop
	Stray      int   `json:"stray"`      // pairs of a sender and an end port that gets copies but is no receiver
	// CreditLoops counts the credit loops of unicast and multicast traffic together, and Dependencies
	// its dependencies between channels that leave switches.
	CreditLoops  int `json:"credit_loops"`
	Dependencies int `json:"dependencies"`
	// Capacity is the number of MLIDs in the smallest table, 0 if no table's size is known. Fullest is
	// the table with the greatest share in use.
	Capacity int             `json:"capacity,omitempty"`
	Fullest  *MulticastTable `json:"fullest,omitempty"`
}

// MulticastTable is a switch's multicast table, with its use.
type MulticastTable struct {
	SwitchRef
	MLIDs    int `json:"mlids"`    // with a port in its mask
	Capacity int `json:"capacity"` // most MLIDs
}

// BalanceCounts describes how routes spread over the cables between switches, each direction by
// itself and all VLs together. A route is a delivered unicast pair whose packets cross the cable,
// of two ports that count for load (see fabric.Kind).
type BalanceCounts struct {
	MaxRoutes  int64   `json:"max_routes_per_link"`
	MeanRoutes float64 `json:"mean_routes_per_link"` // over all, unused ones too
	MaxLink    *Hop    `json:"max_link,omitempty"`   // the first of the most loaded, on VL 0; nil without routes
	// IdleLinks counts channels without routes, 0 if no channel has routes. The
	// rule IdleLinks is about those that shortest paths could take.
	IdleLinks int `json:"idle_links"`
	// Idle lists these channels with reasons, in the order of GUIDs and ports; nil if tables do not
	// deliver all pairs, and from an IncrementalChecker.
	Idle []IdleChannel `json:"idle,omitempty"`
	// MaxRelative is nil if the rates of cables between switches are unknown or equal.
	MaxRelative *RelativeLoad `json:"max_relative_load,omitempty"`
}

// RelativeLoad is the channel between switches that takes the most time: the one with
// the most routes for its rate.
type RelativeLoad struct {
	// Load is its routes times the rate Fastest over Rate: the number of routes
	// that take the same time on the fastest cable.
	Load    float64 `json:"load"`
	Routes  int64   `json:"routes"`
	Link    Hop     `json:"link"`    // the first of equal ones, on VL 0
	Rate    string  `json:"rate"`    // of the link, as "4xDDR", or UnknownRate
	Fastest string  `json:"fastest"` // rate of the fastest cable between switches
}

// UnknownRate is the Rate of a link of unknown rate, which counts as the commonest.
const UnknownRate = "unknown rate"

// linkLoad has the most routes on a channel of one width and speed between switches.
type linkLoad struct {
	Link   fabric.Link
	Routes int64
}

// AdaptiveCounts describes adaptive tables, by which a switch chooses one of several ports. All
// choices count: a pair is lost if some sequence of choices loses a packet. Pairs are as in
// UnicastCounts and ManagementCounts, without pairs that no cables join.
type AdaptiveCounts struct {
	PLFTs  int   `json:"plfts"`  // private LFTs of a switch
	Groups int   `json:"groups"` // rows of all group tables
	Free   int64 `json:"free"`   // entries in which a switch chooses for each packet
	HBF    int64 `json:"hbf"`    // entries in which it chooses for each flow
	// Pairs whose packets may be lost, and pairs whose packets may loop.
	DeadEnds           int64 `json:"dead_ends"`
	Loops              int64 `json:"loops"`
	ManagementDeadEnds int64 `json:"management_dead_ends"`
	ManagementLoops    int64 `json:"management_loops"`
	// CreditLoops counts credit loops of all choices. NoEscape counts those among dependencies on
	// static ports: if it is 0, packets always have an escape. Channels and Dependencies are those of
	// all choices of all pairs, on channels that leave switches.
	CreditLoops           int `json:"credit_loops"`
	NoEscape              int `json:"no_escape"`
	ManagementCreditLoops int `json:"management_credit_loops"`
	ManagementNoEscape    int `json:"management_no_escape"`
	VLs                   int `json:"vls"`
	Channels              int `json:"channels"`
	Dependencies          int `json:"dependencies"`
}

// PartitionCounts describes the partitions of P_Key tables, or of a partitions.conf if there are no
// tables.
type PartitionCounts struct {
	Ports      int         `json:"ports"` // end ports whose table is known
	Partitions int         `json:"partitions"`
	List       []Partition `json:"list"` // by P_Key; never nil
}

// Partition tells which ports are in a partition. Full and Limited count all its ports, also of
// switches and aggregation nodes. FullHosts and LimitedHosts name only hosts, with numbers in
// brackets as names.Fold writes them.
type Partition struct {
	PKey         fabric.PKey `json:"pkey"`           // without the membership bit
	Name         string      `json:"name,omitempty"` // in partitions.conf
	Full         int         `json:"full"`           // ports
	Limited      int         `json:"limited"`        // ports
	FullHosts    string      `json:"full_hosts"`
	LimitedHosts string      `json:"limited_hosts"`
}

// LoadBound compares the greatest relative load of tables with proven lower bounds.
// It shows how much better tables could be.
type LoadBound struct {
	// Load is the most routes on a channel between switches; each counts as the rate of the fastest
	// cable over that of its own. It is 0 if tables do not deliver all pairs, and without tables.
	Load float64 `json:"load"`
	// Fastest is the rate of the fastest channel, on which Load and bounds count routes; "" if all
	// rates are equal.
	Fastest string       `json:"fastest,omitempty"`
	Bounds  []LowerBound `json:"bounds"` // never nil
}

// LoadText describes Load: "6,375", or "6,375 routes on 4xHDR" if rates differ, since a slower
// cable may be the busiest.
func (b *LoadBound) LoadText() string {
	n := int64(math.Round(b.Load))
	if b.Fastest == "" {
		return text.Grouped(n)
	}
	return text.CountGrouped(n, "route", "routes") + " on " + b.Fastest
}

// LowerBound is a load that no tables can stay below.
type LowerBound struct {
	// Paths tells for which tables the bound holds: any; shortest, for those with shortest paths;
	// legal, for those that use the legal ports of their up*/down* order.
	Paths string   `json:"paths"`
	Least float64  `json:"least"`
	Exact *big.Rat `json:"-"`     // Least as a fraction
	Above float64  `json:"above"` // share of Least by which Load is above it; 0 without Load
	// Unit is the size of the lumps in which the bound counts routes, since a switch has one port for
	// a LID; 1 if it does not matter.
	Unit    int64  `json:"unit"`
	Witness string `json:"witness"` // description for people
	// Close is false if better bounds may exist: only cuts were tried, and the fabric is no tree.
	Close bool `json:"close"`
	tree  bool
}

// AboveText returns how the load compares with the bound: "6.2 % above", "3.5 times".
func (x *LowerBound) AboveText() string {
	if x.Above < 1 {
		return fmt.Sprintf("%.1f %% above", 100*x.Above)
	}
	return fmt.Sprintf("%.1f times", 1+x.Above)
}

// LoadText formats a load, rounded down to a tenth: "714" or "714.2".
func LoadText(x *big.Rat) string {
	tenths := new(big.Int).Mul(x.Num(), big.NewInt(10))
	tenths.Div(tenths, x.Denom())
	s := text.Grouped(tenths.Int64() / 10)
	if rest := tenths.Int64() % 10; rest != 0 {
		s += fmt.Sprintf(".%d", rest)
	}
	return s
}

// IdleChannel is a channel between switches without routes; Endpoint is its sending port.
type IdleChannel struct {
	Endpoint
	Reason string `json:"reason"` // one of IdleReasons
}

// IdleReasons are the reasons why channels have no routes; the first that is true counts.
var IdleReasons = []string{IdleNoHosts, IdleNotShortest, IdleNotLegal, IdleSlow, IdleFewLIDs, IdleUnused}

// The reasons.
const (
	IdleNoHosts     = "no-hosts"     // a switch at one end has no hosts, and no shortest path between hosts passes it
	IdleNotShortest = "not-shortest" // no shortest path between hosts takes it
	IdleNotLegal    = "not-legal"    // no path between hosts by legal ports of the up*/down* order takes it
	IdleSlow        = "slow"         // the switch that it leaves has a faster cable to another switch
	IdleFewLIDs     = "few-lids"     // the hosts of the switch that it leads to have fewer LIDs than there are cables to it
	IdleUnused      = "unused"       // none of these: the tables could use it
)

// Histogram has counts by a small number, the index.
type Histogram []int64

// MarshalJSON returns an object of the indices with a count that is not 0, in order.
func (h Histogram) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, n := range h {
		if n == 0 {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `"%d":%d`, i, n)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON writes, with indices up to 65,535; null leaves h unchanged.
func (h *Histogram) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var m map[uint16]int64
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	*h = nil
	for i, n := range m {
		if n < 0 {
			return fmt.Errorf("histogram has %d at %d: want counts from 0 on", n, i)
		}
		*h = append(*h, make(Histogram, max(0, int(i)+1-len(*h)))...)
		(*h)[i] = n
	}
	return nil
}

// The verdicts.
const (
	VerdictClean     = "clean"
	VerdictWarnings  = "warnings"
	VerdictUndecided = "undecided"
	VerdictErrors    = "errors"
)

// Verdict returns the verdict if s is the gravest severity and nothing is undecided.
func (s Severity) Verdict() string {
	switch s {
	case Error:
		return VerdictErrors
	case Warning:
		return VerdictWarnings
	}
	return VerdictClean
}

// Tally counts things by severity.
type Tally [Error + 1]int64

// Words describes the counts that are not 0, from the gravest severity down to least.
func (t *Tally) Words(least Severity) (words []string) {
	for s := Error; s >= least; s-- {
		if n := t[s]; n > 0 {
			words = append(words, text.CountGrouped(n, s.String(), s.String()+"s"))
		}
	}
	return words
}

// Worst returns the gravest severity of findings that are not waived, Clean
// without any.
func (r *Result) Worst() Severity {
	worst := Clean
	for i := range r.Findings {
		if r.Findings[i].Waiver == nil {
			worst = max(worst, r.Findings[i].Severity)
		}
	}
	return worst
}

// Fails returns true if a finding that is not waived has the given severity or a
// graver one, or if something is undecided.
func (r *Result) Fails(at Severity) bool { return r.Worst() >= at || len(r.Undecided) > 0 }

// Leave adds undecided rules, and updates the verdict.
func (r *Result) Leave(list ...Undecided) {
	r.Undecided = append(r.Undecided, list...)
	r.updateVerdict()
}

// leave adds rules that are undecided for one reason; it does not update the verdict.
func (r *Result) leave(reason string, rules ...string) {
	for _, rule := range rules {
		r.Undecided = append(r.Undecided, Undecided{rule, reason})
	}
}

// Add adds findings, sorts all, and updates the verdict.
func (r *Result) Add(findings ...Finding) {
	for _, f := range findings {
		if f.Witness == nil {
			f.Witness = []Hop{}
		}
		r.Findings = append(r.Findings, f)
	}
	r.updateVerdict()
}

// Regrade sets the severity of all findings of a rule, for callers who know
// that the tables need not obey it.
func (r *Result) Regrade(rule string, to Severity) {
	for i := range r.Findings {
		if r.Findings[i].Rule == rule {
			r.Findings[i].Severity = to
		}
	}
	r.updateVerdict()
}

// Edit replaces all findings by those that edit returns, and updates the
// verdict. edit may reuse the list that it gets.
func (r *Result) Edit(edit func([]Finding) []Finding) {
	r.Findings = edit(r.Findings)
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	r.updateVerdict()
}

// updateVerdict sorts Findings and Undecided, and sets the verdict. Waived
// findings come last; within a severity, rules of other packages come after
// those of this one.
func (r *Result) updateVerdict() {
	last := func(is bool) int {
		if is {
			return 1
		}
		return 0
	}
	foreign := func(f *Finding) string {
		if ruleIndex(f.Rule) < len(Rules) {
			return ""
		}
		return f.Rule
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(last(a.Waiver != nil), last(b.Waiver != nil)),
			-cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(ruleIndex(a.Rule), ruleIndex(b.Rule)),
			cmp.Compare(foreign(&a), foreign(&b)),
			cmp.Compare(last(a.more), last(b.more)),
			cmp.Compare(a.LID, b.LID),
			cmp.Compare(a.Switch, b.Switch),
			slices.CompareFunc(a.Ports, b.Ports, func(x, y Endpoint) int {
				return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Port, y.Port))
			}),
		)
	})
	slices.SortFunc(r.Undecided, func(a, b Undecided) int {
		return cmp.Or(cmp.Compare(ruleIndex(a.Rule), ruleIndex(b.Rule)), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Reason, b.Reason))
	})
	if r.Undecided = slices.Compact(r.Undecided); r.Undecided == nil {
		r.Undecided = []Undecided{}
	}
	if worst := r.Worst(); worst < Error && len(r.Undecided) > 0 {
		r.Verdict = VerdictUndecided
	} else {
		r.Verdict = worst.Verdict()
	}
}

// leaveUnowned leaves rules undecided if there are lids: ascending, with entries, but on no port.
func (r *Result) leaveUnowned(lids []fabric.LID, rules ...string) {
	if len(lids) == 0 {
		return
	}
	what := fmt.Sprintf("LID %d, which no port of the topology has", lids[0])
	if n := len(lids); n > 1 {
		what = fmt.Sprintf("%d LIDs that no port of the topology has, such as %d", n, lids[0])
	}
	r.leave(fmt.Sprintf("there are forwarding entries for %s; ibnetdiscover's text of all ports, with their LMC, decides", what), rules...)
}

// countFindings returns the sum of the counts of a rule's findings.
func countFindings(list []Finding, rule string) (n int64) {
	for i := range list {
		if list[i].Rule == rule {
			n += list[i].Count
		}
	}
	return n
}

// keepDoubts leaves a rule undecided if r has fewer findings of it than the Result named any, for
// which packets of unknown SL may have any SL.
func (r *Result) keepDoubts(any *Result, reason string, rules ...string) {
	for _, rule := range rules {
		if countFindings(any.Findings, rule) > countFindings(r.Findings, rule) {
			r.leave(reason, rule)
		}
	}
	r.updateVerdict()
}
