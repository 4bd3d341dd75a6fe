package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// Result is the result of Compare. Its JSON form is the document of `ibweave diff --format json`,
// see docs/dev/diff.md. A part is nil if it was not compared, since a snapshot lacks it; LIDs is
// nil if a fabric has none.
type Result struct {
	Old       Side              `json:"old"`
	New       Side              `json:"new"`
	Nodes     NodeChanges       `json:"nodes"`
	Links     LinkChanges       `json:"links"`
	LIDs      *LIDChanges       `json:"lids"`
	LFTs      *LFTChanges       `json:"lfts"`
	SL2VL     *SL2VLChanges     `json:"sl2vl"`
	PathSLs   *PathSLChanges    `json:"path_sls"`
	Multicast *MulticastChanges `json:"multicast"`
	Adaptive  *ChoiceChanges    `json:"adaptive"`
	// Pairs counts the pairs that changes of tables and cables affect.
	Pairs *PairChanges `json:"pairs"`
	// Transition has the faults that are possible while forwarding tables are written.
	Transition *Transition `json:"transition"`
	Findings   []Finding   `json:"findings"` // the gravest first; never nil
	Equal      bool        `json:"equal"`    // no difference, and neither state has tables that the other lacks
	Verdict    string      `json:"verdict"`  // as verify.Result has it
}

// Side is one of the two states, in numbers.
type Side struct {
	Name     string     `json:"name"`
	Switches int        `json:"switches"`
	CAPorts  int        `json:"ca_ports"`
	Links    int        `json:"links"`
	MaxLID   fabric.LID `json:"max_lid"`
	// Has lists the parts that this state has: "lfts", "sl2vl", "path_sls", "multicast",
	// "adaptive". Nodes and links are always there.
	Has []string `json:"has"`
	// UnknownSLs is set if the state has several lanes but does not tell the SLs of paths.
	UnknownSLs bool `json:"-"`
	// Groups has sums by groups of hosts; nil if not asked for.
	Groups []groups.State `json:"host_groups,omitempty"`
}

// NodeRef names a node.
type NodeRef struct {
	GUID fabric.GUID `json:"guid"`
	Name fabric.Name `json:"name"`
	Type string      `json:"type"` // "switch", "ca" or "router"
}

// PortRef names a port.
type PortRef struct {
	Node fabric.GUID    `json:"guid"`
	Name fabric.Name    `json:"name"` // of the node
	Port fabric.PortNum `json:"port"`
	// Label is that of the port, see fabric.Fabric.Label.
	Label string `json:"label,omitempty"`
}

// String is "name"[port].
func (p PortRef) String() string { return p.Name.At(p.Port, p.Label) }

// LinkRef names a cable.
type LinkRef struct {
	A    PortRef `json:"a"`
	B    PortRef `json:"b"`
	Link string  `json:"link,omitempty"` // "4xNDR"
}

// NodeChanges is nodes that came, went, were replaced or changed, by GUID,
// switches first.
type NodeChanges struct {
	Gone     []NodeRef     `json:"gone"`
	New      []NodeRef     `json:"new"`
	Replaced []Replacement `json:"replaced"`
	Changed  []NodeChange  `json:"changed"`
}

// Replacement is a node in the place of one that had another GUID.
type Replacement struct {
	Old NodeRef `json:"old"`
	New NodeRef `json:"new"`
}

// NodeChange is a node that is there still, but different.
type NodeChange struct {
	Node   NodeRef `json:"node"`
	Fields []Field `json:"fields"`
}

// Field is something about a node, as text.
type Field struct {
	Name string `json:"name"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// LinkChanges is cables that came, went, moved or changed.
type LinkChanges struct {
	Gone    []LinkRef    `json:"gone"`
	New     []LinkRef    `json:"new"`
	Moved   []LinkMove   `json:"moved"`
	Changed []LinkChange `json:"changed"`
}

// LinkMove is a cable that has one of its ends where it was.
type LinkMove struct {
	End  PortRef `json:"end"`
	Old  PortRef `json:"old"` // the other end before
	New  PortRef `json:"new"`
	Link string  `json:"link,omitempty"` // as it is now
}

// LinkChange is a cable with another width or speed.
type LinkChange struct {
	Link LinkRef `json:"cable"`
	Old  string  `json:"old"`
	New  string  `json:"new"`
}

// LIDChanges is ports with other LIDs.
type LIDChanges struct {
	Changed []LIDChange `json:"changed"` // by node
}

// LIDChange is a port with another LID or LMC; 0 stands for none.
type LIDChange struct {
	Port   PortRef    `json:"port"`
	Old    fabric.LID `json:"old"`
	New    fabric.LID `json:"new"`
	OldLMC uint8      `json:"old_lmc"`
	NewLMC uint8      `json:"new_lmc"`
}

// LFTChanges counts changed forwarding entries of switches and for
// destinations that both states have. Entries are matched by the end port that
// has their LID, even if it has another LID in the other state. A LID without
// a port in either state is a destination by itself.
type LFTChanges struct {
	Entries int64 `json:"entries"` // entries that were compared
	Changed int64 `json:"changed"` // those that lead elsewhere, NoPath included
	// Gone and New count entries of these switches, other than NoPath, for destinations that only
	// the old or only the new state has.
	Gone int64 `json:"gone"`
	New  int64 `json:"new"`
	// Blocks counts the blocks of 64 LIDs to write on all switches, new ones too; OfBlocks counts
	// all blocks of these switches.
	Blocks   int64          `json:"blocks"`
	OfBlocks int64          `json:"of_blocks"`
	Switches []SwitchChange `json:"switches"` // those with a block to write, by GUID
}

// SwitchChange is the changes of one switch's table.
type SwitchChange struct {
	verify.SwitchRef
	Changed int     `json:"changed"` // entries that lead elsewhere
	Blocks  int     `json:"blocks"`
	Entries []Entry `json:"entries"` // those that changed, by new LID
	// Labels has the labels of its ports in the new state, see fabric.Fabric.PortLabels.
	Labels fabric.PortLabels `json:"labels,omitempty"`
}

// Entry is one entry of a forwarding table that changed.
type Entry struct {
	LID    fabric.LID     `json:"lid"`               // of the destination in the new state
	OldLID fabric.LID     `json:"old_lid,omitempty"` // in the old state; 0 if it is the same
	Old    fabric.PortNum `json:"old"`               // NoPath for none
	New    fabric.PortNum `json:"new"`
}

// SL2VLChanges is SL-to-VL maps that changed, of ports that both states have.
type SL2VLChanges struct {
	Changed int64       `json:"changed"`
	Ports   []MapChange `json:"ports"` // by the port a packet leaves by, and the one it comes in by
}

// MapChange is one SL-to-VL map: for packets that enter by port In of the node, 0 for its own, and
// leave by Out.
type MapChange struct {
	Out PortRef        `json:"out"`
	In  fabric.PortNum `json:"in"`
	// InLabel is the label of port In.
	InLabel string        `json:"in_label,omitempty"`
	Old     [16]fabric.VL `json:"old"`
	New     [16]fabric.VL `json:"new"`
}

// ChoiceChanges has changed choices: the ports that an adaptive switch may choose for a destination
// in a private LFT. In LFT 0, entries that are static in both states count in LFTChanges.
type ChoiceChanges struct {
	ChoiceCounts
	Switches []ChoiceChange `json:"switches"` // those with a change
}

// ChoiceCounts counts choices that changed.
type ChoiceCounts struct {
	Changed  int64 `json:"changed"`
	Wider    int64 `json:"wider"`    // choices with all former ports, and more
	Narrower int64 `json:"narrower"` // choices that lost ports and have no new one
}

// ChoiceChange has the counts of one switch.
type ChoiceChange struct {
	verify.SwitchRef
	ChoiceCounts
}

// PathSLChanges counts paths with another SL. A path is from a switch, or a port with SLs of its
// own, to a destination.
type PathSLChanges struct {
	Changed int64 `json:"changed"`
}

// PairChanges counts ordered pairs of a CA or router port and a destination
// LID of another port. Both ports are in both states; new and removed nodes are
// in NodeChanges. Paths are the same if they take the same cables.
type PairChanges struct {
	Compared int64 `json:"compared"`
	PairCounts
	// Destinations lists the LIDs with the most lost pairs, then with the most changed ones: at
	// most mostAffected of AllDestinations.
	Destinations    []Affected `json:"destinations"`
	AllDestinations int        `json:"all_destinations"`
}

// PairCounts counts pairs by what became of them.
type PairCounts struct {
	Changed  int64 `json:"changed"`  // the sum of the next three
	Rerouted int64 `json:"rerouted"` // arrive as before, on another path
	Lost     int64 `json:"lost"`     // arrived, and no longer do
	Gained   int64 `json:"gained"`   // arrive now
	Longer   int64 `json:"longer"`   // rerouted past more switches
	Shorter  int64 `json:"shorter"`  // rerouted past fewer
}

// Affected is a LID of an end port, with the changed pairs to it.
type Affected struct {
	Port PortRef    `json:"port"`
	LID  fabric.LID `json:"lid"` // in the new state
	PairCounts
}

// Transition has the faults possible while old forwarding tables become new ones, on
// the cables of the new fabric. A mixture is any choice of an old or a new
// entry for every switch and LID.
type Transition struct {
	// OldLoops and NewLoops count LIDs for which the old or the new tables loop by themselves,
	// Loops those for which neither do but a mixture does. Unordered counts LIDs whose entries
	// change without an order, because the new tables loop.
	Loops     int `json:"loops"`
	OldLoops  int `json:"old_loops"`
	NewLoops  int `json:"new_loops"`
	Unordered int `json:"unordered"`
	// Cycles has a shortest loop for each of the first LIDs that Loops counts; never nil.
	Cycles [][]MixedHop `json:"cycles"`
	// CreditLoops is about the channel dependencies of all mixtures together; if mixtures can loop,
	// of those that Order allows.
	CreditLoops CreditLoops `json:"credit_loops"`
	// Order is an order of writes in which no state, from the first write to
	// the last, has a forwarding loop that is not in the old tables, except for
	// Unordered LIDs.
	Order Order `json:"order"`
}

// CreditLoops counts strongly connected components, with a cycle, of channel
// dependency graphs.
type CreditLoops struct {
	Count int `json:"count"` // of all mixtures
	Old   int `json:"old"`   // of the old tables by themselves, on the old cables, as verify counts
	New   int `json:"new"`
	// Management counts the same with packets to and from switches.
	Management    int `json:"management"`
	OldManagement int `json:"old_management"`
	NewManagement int `json:"new_management"`
	// Cycles has a short witness for each of Count, at most maxWitnesses; never nil.
	// ManagementCycles has those of Management, only if Count is 0 and neither old nor new tables
	// have any by themselves.
	Cycles           [][]MixedHop `json:"cycles"`
	ManagementCycles [][]MixedHop `json:"management_cycles"`
}

// MixedHop is a channel that leaves a switch.
type MixedHop struct {
	// LID is that of a packet that takes this channel and, in a credit loop, the next one after it.
	lft.Hop
	// Table is the table whose entry leads there: "old", "new" or "both".
	Table string `json:"table"`
}

// Order is the stages of writes. The writes of a stage may be done in any order or
// at once; a stage begins when all writes of the stage before are confirmed.
type Order struct {
	// Kind is "none" if nothing is written, "any" if every order is free of loops, "switches" if
	// it is enough to order whole switches, else "blocks": LIDs need opposite orders of switches.
	Kind string `json:"kind"`
	// Stages is the switches with a block to write, for "any" and "switches",
	// by GUID within a stage.
	Stages [][]fabric.GUID `json:"stages,omitempty"`
	// Blocks is the order for each block that is written, for "blocks". Blocks
	// do not wait for each other.
	Blocks []BlockOrder `json:"blocks,omitempty"`
}

// The kinds of Order.
const (
	OrderNone     = "none"
	OrderAny      = "any"
	OrderSwitches = "switches"
	OrderBlocks   = "blocks"
)

// BlockOrder is the order for the block of LIDs 64*Block to 64*Block+63.
type BlockOrder struct {
	Block int `json:"block"`
	// Passes is more than one when LIDs of the block need opposite orders: each
	// pass writes the entries of its LIDs, and leaves the others as they are.
	Passes []Pass `json:"passes"`
}

// Pass is some LIDs of a block, and the stages in which switches get their
// entries for these LIDs.
type Pass struct {
	LIDs   []fabric.LID    `json:"lids,omitempty"` // with an entry that changes, ascending; nil for the whole block
	Stages [][]fabric.GUID `json:"stages"`
}

// MulticastChanges is multicast masks that changed, on switches that both
// states have, by MLID.
type MulticastChanges struct {
	MLIDs   int          `json:"mlids"`   // with a mask that changed
	Masks   int          `json:"masks"`   // of a switch and an MLID
	Changed []MLIDChange `json:"changed"` // by MLID
	// Transient counts the MLIDs whose old and new masks together let packets loop or arrive twice.
	Transient int `json:"transient"`
}

// MLIDChange is the masks of one MLID.
type MLIDChange struct {
	MLID  fabric.LID   `json:"mlid"`
	Masks []MaskChange `json:"masks"` // by switch
	// Transient names the fault while switches have old and new masks; "" for none.
	Transient string `json:"transient,omitempty"`
}

// MaskChange is one switch's mask.
type MaskChange struct {
	verify.SwitchRef
	Old []int `json:"old"` // ports, ascending; never nil
	New []int `json:"new"`
	// Labels has the labels of its ports.
	Labels fabric.PortLabels `json:"labels,omitempty"`
}

// Finding says that a state or a change is worth attention. Rules are those of
// this package.
type Finding struct {
	Rule     string          `json:"rule"`
	Severity verify.Severity `json:"severity"`
	Message  string          `json:"message"`
	Count    int64           `json:"count"`
}

// The rules, gravest first.
const (
	PairsLost           = "pairs-lost"            // error: pairs arrived and no longer do
	TransientLoop       = "transient-loop"        // warning
	TransientCreditLoop = "transient-credit-loop" // warning
	TransientManagement = "transient-management"  // warning: as above, only with packets to and from switches
	TransientMulticast  = "transient-multicast"   // warning
	NodesDiffer         = "nodes-differ"          // note, as all below
	LinksDiffer         = "links-differ"          //
	LIDsDiffer          = "lids-differ"           //
	LFTsDiffer          = "lfts-differ"           //
	SL2VLDiffer         = "sl2vl-differ"          //
	PathSLsDiffer       = "path-sls-differ"       //
	MulticastDiffer     = "multicast-differ"      //
	AdaptiveDiffer      = "adaptive-differ"       //
	NotCompared         = "not-compared"          // one state has tables that the other lacks
)

func newResult(a, b *state.State) *Result {
	return &Result{
		Old: side(a), New: side(b), Findings: []Finding{},
		Nodes: NodeChanges{Gone: []NodeRef{}, New: []NodeRef{}, Replaced: []Replacement{}, Changed: []NodeChange{}},
		Links: LinkChanges{Gone: []LinkRef{}, New: []LinkRef{}, Moved: []LinkMove{}, Changed: []LinkChange{}},
	}
}

// parts has the parts of Side.Has, with their names for people.
var parts = [...]struct{ name, words string }{
	{"lfts", "forwarding tables"},
	{"sl2vl", "SL-to-VL tables"},
	{"path_sls", "path SLs"},
	{"multicast", "multicast tables"},
	{"adaptive", "adaptive routing"},
}

func side(s *state.State) Side {
	f := s.Fabric
	d := Side{Name: s.Name, Switches: f.NumSwitches(), CAPorts: len(f.CAPorts()), Links: f.NumLinks(), MaxLID: f.MaxLID(), Has: []string{},
		UnknownSLs: s.SL2VL != nil && s.PathSLs == nil && s.UnknownSLs}
	for i, has := range []bool{s.Tables != nil, s.SL2VL != nil, s.PathSLs != nil, s.Multicast != nil, s.Adaptive != nil} {
		if has {
			d.Has = append(d.Has, parts[i].name)
		}
	}
	return d
}

// difference is one kind of differences: a line of the text, and a finding of the same words.
type difference struct {
	rule  string // "" for no finding
	name  string // of what was compared
	count int64
	line  string
}

// differences lists what was compared.
func (r *Result) differences() (list []difference) {
	add := func(rule, name string, count int64, format string, args ...any) {
		list = append(list, difference{rule, name, count, fmt.Sprintf(format, args...)})
	}
	n, l := &r.Nodes, &r.Links
	add(NodesDiffer, "nodes", int64(len(n.Gone)+len(n.New)+len(n.Replaced)+len(n.Changed)), "%s",
		join(counted(len(n.Gone), "gone"), counted(len(n.New), "new"), counted(len(n.Replaced), "replaced"), counted(len(n.Changed), "changed")))
	add(LinksDiffer, "links", int64(len(l.Gone)+len(l.New)+len(l.Moved)+len(l.Changed)), "%s",
		join(counted(len(l.Gone), "gone"), counted(len(l.New), "new"), counted(len(l.Moved), "moved"), counted(len(l.Changed), "changed")))
	if d := r.LIDs; d != nil {
		add(LIDsDiffer, "LIDs", int64(len(d.Changed)), "%s", text.CountGrouped(len(d.Changed), "port has another LID", "ports have other LIDs"))
	}
	if d := r.LFTs; d != nil {
		count := cmp.Or(d.Changed+d.Gone+d.New, d.Blocks) // or other LIDs of the same destinations
		changed := fmt.Sprintf("%s of %s changed", text.Grouped(d.Changed), text.Grouped(d.Entries))
		add(LFTsDiffer, "entries", count, "%s; %s of %s blocks to write, on %s",
			join(changed, counted(d.New, "for new LIDs"), counted(d.Gone, "for LIDs that went")),
			text.Grouped(d.Blocks), text.Grouped(d.OfBlocks), text.CountGrouped(len(d.Switches), "switch", "switches"))
	}
	if d := r.SL2VL; d != nil {
		add(SL2VLDiffer, "SL-to-VL", d.Changed, "%s changed", text.CountGrouped(d.Changed, "SL-to-VL map", "SL-to-VL maps"))
	}
	if d := r.PathSLs; d != nil {
		add(PathSLsDiffer, "path SLs", d.Changed, "the SL of %s changed", text.CountGrouped(d.Changed, "path", "paths"))
	}
	if d := r.Multicast; d != nil {
		add(MulticastDiffer, "multicast", int64(d.Masks), "%s of %s changed",
			text.CountGrouped(d.Masks, "multicast mask", "multicast masks"), text.CountGrouped(d.MLIDs, "MLID", "MLIDs"))
	}
	if d := r.Adaptive; d != nil {
		add(AdaptiveDiffer, "choices", d.Changed, "%s changed on %s: %s wider, %s narrower; what can happen on the way is told of static ports alone", text.Grouped(d.Changed),
			text.CountGrouped(len(d.Switches), "switch", "switches"), text.Grouped(d.Wider), text.Grouped(d.Narrower))
	}
	if p := r.Pairs; p != nil {
		add("", "paths", p.Changed, "%s of %s affected: %s rerouted (%s longer, %s shorter), %s lost, %s gained",
			text.Grouped(p.Changed), text.CountGrouped(p.Compared, "pair", "pairs"), text.Grouped(p.Rerouted), text.Grouped(p.Longer), text.Grouped(p.Shorter),
			text.Grouped(p.Lost), text.Grouped(p.Gained))
	}
	return list
}

// counted returns "3 gone", or "" for 0.
func counted[N text.Integer](n N, what string) string {
	if n == 0 {
		return ""
	}
	return text.Grouped(n) + " " + what
}

// join puts commas between the words that are not empty.
func join(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}

// addFindings makes findings of the differences, and sets the verdict.
func (r *Result) addFindings() {
	r.Equal = true
	differ := func(rule string, count int64, message string) {
		if count > 0 && rule != "" {
			r.Equal = false
			r.Findings = append(r.Findings, Finding{Rule: rule, Severity: verify.Note, Message: message, Count: count})
		}
	}
	for _, d := range r.differences() {
		differ(d.rule, d.count, d.name+": "+d.line)
	}
	for _, p := range parts {
		x, y := slices.Contains(r.Old.Has, p.name), slices.Contains(r.New.Has, p.name)
		switch {
		case x && !y:
			differ(NotCompared, 1, "only the old state has "+p.words)
		case y && !x:
			differ(NotCompared, 1, "only the new state has "+p.words)
		}
	}
	r.addWarnings()
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return -cmp.Compare(a.Severity, b.Severity) })
	r.Verdict = r.Worst().Verdict()
}

// undecided returns true if credit loops during the change may come from unknown path SLs alone:
// a state has such SLs, and none without them has a credit loop by itself.
func (r *Result) undecided() bool {
	x, y, c := &r.Old, &r.New, &r.Transition.CreditLoops
	return c.Count > 0 && (x.UnknownSLs || y.UnknownSLs) && (c.Old == 0 || x.UnknownSLs) && (c.New == 0 || y.UnknownSLs)
}

// addWarnings adds findings of lost pairs, and of faults while tables are written.
func (r *Result) addWarnings() {
	add := func(rule string, s verify.Severity, count int64, format string, args ...any) {
		r.Findings = append(r.Findings, Finding{Rule: rule, Severity: s, Message: fmt.Sprintf(format, args...), Count: count})
	}
	if p := r.Pairs; p != nil && p.Lost > 0 {
		add(PairsLost, verify.Error, p.Lost, "%s arrived with the old tables and cables and do not with the new ones", text.CountGrouped(p.Lost, "pair", "pairs"))
	}
	if t := r.Transition; t != nil {
		var loops []string
		if t.Loops > 0 {
			loops = append(loops, text.CountGrouped(t.Loops, "LID", "LIDs")+" can loop, unless writes are in the order that --format json has")
		}
		if t.Unordered > 0 {
			loops = append(loops, text.CountGrouped(t.Unordered, "LID", "LIDs")+" can loop in any order, since the new tables do")
		}
		if len(loops) > 0 {
			add(TransientLoop, verify.Warning, int64(t.Loops+t.Unordered), "while tables are written, packets for %s", strings.Join(loops, ", and for "))
		}
		c := &t.CreditLoops
		switch {
		case r.undecided():
			add(TransientCreditLoop, verify.Warning, int64(c.Count),
				"it is undecided whether paths wait for each other's credits in a cycle while tables are written: path SLs are missing, and with some SLs they do")
		case c.Count > 0 && c.Old == 0 && c.New == 0:
			add(TransientCreditLoop, verify.Warning, int64(c.Count),
				"while tables are written, old and new paths together can wait for each other's credits in a cycle, though neither do by themselves")
		case c.Count > 0:
			whose := "the old and the new tables both do"
			if c.Old == 0 {
				whose = "the new tables do"
			} else if c.New == 0 {
				whose = "the old tables do"
			}
			add(TransientCreditLoop, verify.Warning, int64(c.Count),
				"while tables are written, paths can wait for each other's credits in a cycle; %s by themselves", whose)
		case c.Management > 0 && c.OldManagement == 0 && c.NewManagement == 0:
			add(TransientManagement, verify.Warning, int64(c.Management),
				"while tables are written, paths to and from switches close a cycle of credits, though neither old nor new ones do by themselves")
		}
	}
	if m := r.Multicast; m != nil && m.Transient > 0 {
		add(TransientMulticast, verify.Warning, int64(m.Transient), "while masks are written, multicast packets of %s can loop or arrive twice, unless ports that new masks lack are taken out before others come in",
			text.CountGrouped(m.Transient, "MLID", "MLIDs"))
	}
}

// Worst is the gravest severity among the findings, verify.Clean without any.
func (r *Result) Worst() verify.Severity {
	if len(r.Findings) == 0 {
		return verify.Clean
	}
	return r.Findings[0].Severity
}

func nodeRef(f *fabric.Fabric, id fabric.NodeID) NodeRef {
	n := f.Node(id)
	types := map[fabric.NodeType]string{fabric.Switch: "switch", fabric.CA: "ca", fabric.Router: "router"}
	return NodeRef{GUID: n.GUID, Name: f.Name(id), Type: types[n.Type]}
}

func portRef(f *fabric.Fabric, p fabric.PortID) PortRef { return PortRef(verify.EndpointOf(f, p)) }
