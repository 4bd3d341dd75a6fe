// Package drift compares the tables that switches have with those that they were
// meant to have: linear and multicast forwarding tables and SL-to-VL tables as a
// directory of compile has them, against what was dumped or read from a live subnet.
// It makes no promise to other modules.
//
// Package diff compares a change that an operator is about to make: new LIDs are no other
// differences there. Drift is a change that is not intended: it compares entries as the
// switches have them, by LID, MLID and port number, and matches switches by GUID only.
package drift

import (
	"context"
	"errors"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// DefaultSamples is how many entries of a switch and table are listed.
const DefaultSamples = 20

// Counts says how the entries of a table differ.
type Counts struct {
	Compared int `json:"compared"` // entries that either side has
	Missing  int `json:"missing"`  // meant and not there
	Extra    int `json:"extra"`    // there and not meant
	Changed  int `json:"changed"`  // there, and other than meant
}

// Differ is how many differ.
func (c *Counts) Differ() int { return c.Missing + c.Extra + c.Changed }

func (c *Counts) add(o *Counts) {
	c.Compared += o.Compared
	c.Missing += o.Missing
	c.Extra += o.Extra
	c.Changed += o.Changed
}

// Entry is an entry of a linear forwarding table that differs. fabric.NoPath stands
// for none.
type Entry struct {
	LID   fabric.LID     `json:"lid"`
	Meant fabric.PortNum `json:"meant"`
	Live  fabric.PortNum `json:"live"`
}

// Mask is the mask of an MLID that differs, as the ports that are only in one of the
// two; ascending.
type Mask struct {
	MLID    fabric.LID `json:"mlid"`
	Missing []int      `json:"missing"`
	Extra   []int      `json:"extra"`
}

// Lanes is an SL-to-VL map that differs: of packets that come in by a port, 0 for the
// switch's own, and leave by another.
type Lanes struct {
	In    fabric.PortNum `json:"in"`
	Out   fabric.PortNum `json:"out"`
	Meant lft.VLMap      `json:"meant"`
	Live  lft.VLMap      `json:"live"`
}

// Choice is a choice of an adaptive switch that differs.
type Choice struct {
	PLFT  int             `json:"plft"`
	LID   fabric.LID      `json:"lid"`
	Meant adaptive.Choice `json:"meant"`
	Live  adaptive.Choice `json:"live"`
}

// Switch is a switch, or for SL-to-VL maps also a CA or router, whose tables differ.
type Switch struct {
	verify.SwitchRef
	LFT     Counts   `json:"lft"`
	MFT     Counts   `json:"mft"`
	SL2VL   Counts   `json:"sl2vl"`
	Choices Counts   `json:"adaptive"`
	Empty   bool     `json:"empty"`   // it has no entry at all, and was meant to have some
	Entries []Entry  `json:"entries"` // the first, by LID
	Masks   []Mask   `json:"masks"`   // the first, by MLID
	Maps    []Lanes  `json:"maps"`    // the first, by port out and in
	Sets    []Choice `json:"choices"` // the first, by PLFT and LID
	// Labels are those of its ports, see fabric.Fabric.Label; nil without any.
	Labels fabric.PortLabels `json:"labels,omitempty"`
}

// Report is what Compare found.
type Report struct {
	Switches int `json:"switches"` // that were meant to have tables
	Drifted  int `json:"drifted"`  // of them, those whose tables differ
	Unread   int `json:"unread"`   // of them, those whose tables are not known
	// LFT counts entries, MFT masks of a switch for an MLID, and SL2VL maps of two
	// ports; nil for what was not compared.
	LFT   *Counts `json:"lft"`
	MFT   *Counts `json:"mft"`
	SL2VL *Counts `json:"sl2vl"`
	// Choices counts entries of private LFTs: in number 0 those with a choice of ports, in others all.
	Choices *Counts `json:"adaptive"`
	// Loops is how many MLIDs and LIDs have packets that loop, of those that have
	// a finding: verify.DefaultFindings of each rule at most.
	Loops int `json:"loops"`
	// Findings begin with multicast packets that loop, then unicast packets that
	// do, then credit loops, then the rest by switch; never nil.
	Findings  []verify.Finding `json:"findings"`
	PerSwitch []Switch         `json:"per_switch"` // those that drifted, by GUID; never nil
}

// Equal says whether all that was compared is as it was meant to be, and everything
// could be read. MLIDs that the meant tables do not have are none of their business.
func (r *Report) Equal() bool { return r.Worst() <= verify.Note }

// Worst is the gravest finding's severity, verify.Clean when there is none.
func (r *Report) Worst() verify.Severity { return (&verify.Result{Findings: r.Findings}).Worst() }

// comparison is a Compare under way.
type comparison struct {
	meant, live *state.State
	samples     int
	toLive      []fabric.NodeID // by node of meant; NoNode
	sameFabric  bool            // both fabrics are one
	r           *Report
	per         Switch // of the switch that is looked at
}

// Compare compares the tables that are live with those that were meant. The fabrics
// may be one, as for a dump that does not tell the cables, or two that were found at
// different times. samples bounds the entries that are listed for each switch and table; all
// are counted. Complexity: the entries of all tables, and twice the time that
// verify takes at most.
//
// Errors: ctx's own, and tables that are not of their fabric.
func Compare(ctx context.Context, meant, live *state.State, samples int) (*Report, error) {
	if err := errors.Join(meant.Check(), live.Check()); err != nil {
		return nil, err
	}
	c := &comparison{
		meant: meant, live: live, samples: samples, sameFabric: meant.Fabric == live.Fabric,
		r: &Report{Switches: meant.Fabric.NumSwitches(), Findings: []verify.Finding{}, PerSwitch: []Switch{}},
	}
	c.matchNodes()
	if !c.sameFabric {
		c.compareLIDsAndCables()
	}
	if err := c.compareTables(ctx); err != nil {
		return nil, err
	}
	if meant.Multicast != nil && live.Multicast != nil {
		c.findForeign()
	}
	loops, err := c.findLoops(ctx)
	if err != nil {
		return nil, err
	}
	c.r.Findings = append(append([]verify.Finding{}, loops...), c.r.Findings...)
	return c.r, nil
}

// matchNodes finds the nodes in the live fabric: by GUID, of the same kind and with as many
// ports.
func (c *comparison) matchNodes() {
	f, live := c.meant.Fabric, c.live.Fabric
	c.toLive = make([]fabric.NodeID, f.NumNodes())
	for n := range fabric.NodeID(len(c.toLive)) {
		to, ok := live.NodeByGUID(f.Node(n).GUID)
		if !ok || live.IsSwitch(to) != f.IsSwitch(n) || live.Node(to).NumPorts != f.Node(n).NumPorts {
			to = fabric.NoNode
		}
		c.toLive[n] = to
	}
}

// compareTables compares the tables of each switch, and the maps of CAs and routers.
func (c *comparison) compareTables(ctx context.Context) error {
	countIf := func(both bool) *Counts {
		if both {
			return &Counts{}
		}
		return nil
	}
	r := c.r
	r.LFT = countIf(c.meant.Tables != nil && c.live.Tables != nil)
	r.MFT = countIf(c.meant.Multicast != nil && c.live.Multicast != nil)
	r.SL2VL = countIf(c.meant.SL2VL != nil && c.live.SL2VL != nil)
	r.Choices = countIf(c.meant.Adaptive != nil && c.live.Adaptive != nil)
	f := c.meant.Fabric
	for n := range fabric.NodeID(f.NumNodes()) {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.per = Switch{SwitchRef: verify.SwitchOf(f, n), Entries: []Entry{}, Masks: []Mask{}, Maps: []Lanes{}, Sets: []Choice{}}
		if f.IsSwitch(n) {
			c.compareSwitch(n)
		} else if r.SL2VL != nil {
			c.compareMaps(n, c.toLive[n])
		}
		p := &c.per
		for _, x := range []struct{ sum, one *Counts }{{r.LFT, &p.LFT}, {r.MFT, &p.MFT}, {r.SL2VL, &p.SL2VL}, {r.Choices, &p.Choices}} {
			if x.sum != nil {
				x.sum.add(x.one)
			}
		}
		p.Empty = p.LFT.Missing > 0 && p.LFT.Missing == p.LFT.Compared
		if p.LFT.Differ()+p.MFT.Differ()+p.SL2VL.Differ()+p.Choices.Differ() > 0 {
			if f.IsSwitch(n) {
				r.Drifted++
			}
			p.Labels = f.PortLabels(n)
			r.PerSwitch = append(r.PerSwitch, *p)
			c.reportDifferences()
		}
	}
	return nil
}

// compareSwitch compares the tables of a switch.
func (c *comparison) compareSwitch(s fabric.NodeID) {
	to := c.toLive[s]
	switch {
	case to == fabric.NoNode:
		why := "is not in the live fabric"
		if _, ok := c.live.Fabric.SwitchByGUID(c.per.Switch); ok {
			why = "has another number of ports in the live fabric"
		}
		c.addUnread(why)
		return
	case c.live.Unread != nil && c.live.Unread[to]:
		c.addUnread("could not be read")
		return
	}
	if c.r.LFT != nil {
		c.compareEntries(s, to)
	}
	if c.r.MFT != nil {
		c.compareMasks(s, to)
	}
	if c.r.SL2VL != nil {
		c.compareMaps(s, to)
	}
	if c.r.Choices != nil {
		c.compareChoices(s, to)
	}
}

// note counts an entry x of a table that either side has, and lists it with the first that
// differ. It is extra if only the live side has it, and missing if only the meant one has.
func note[T any](c *comparison, n *Counts, list *[]T, x T, differs, extra, missing bool) {
	n.Compared++
	switch {
	case !differs:
		return
	case missing:
		n.Missing++
	case extra:
		n.Extra++
	default:
		n.Changed++
	}
	if len(*list) < c.samples {
		*list = append(*list, x)
	}
}

// compareEntries compares linear forwarding tables.
func (c *comparison) compareEntries(s, to fabric.NodeID) {
	meant, live := c.meant.Tables.Row(s), c.live.Tables.Row(to)
	p := &c.per
	for lid := 1; lid < max(len(meant), len(live)); lid++ {
		x := Entry{fabric.LID(lid), fabric.NoPath, fabric.NoPath}
		if lid < len(meant) {
			x.Meant = meant[lid]
		}
		if lid < len(live) {
			x.Live = live[lid]
		}
		if x.Meant == fabric.NoPath && x.Live == fabric.NoPath {
			continue
		}
		note(c, &p.LFT, &p.Entries, x, x.Meant != x.Live, x.Meant == fabric.NoPath, x.Live == fabric.NoPath)
	}
}

// compareChoices compares the choices of an adaptive switch. Entries of private LFT 0 without
// one in either state are those of the linear table.
func (c *comparison) compareChoices(s, to fabric.NodeID) {
	p, meant, live := &c.per, c.meant.Adaptive, c.live.Adaptive
	for plft := range max(len(meant.PLFTs), len(live.PLFTs)) {
		for lid := fabric.LID(1); lid <= max(c.meant.Fabric.MaxLID(), c.live.Fabric.MaxLID()); lid++ {
			x := Choice{plft, lid, meant.Choice(plft, s, lid), live.Choice(plft, to, lid)}
			if most := max(x.Meant.Ports.Len(), x.Live.Ports.Len()); most == 0 || most == 1 && plft == 0 {
				continue
			}
			note(c, &p.Choices, &p.Sets, x, x.Meant != x.Live, false, false)
		}
	}
}

// compareMasks compares the masks of the MLIDs that the meant state has.
func (c *comparison) compareMasks(s, to fabric.NodeID) {
	p := &c.per
	for _, mlid := range c.meant.Multicast.Tables.MLIDs() {
		meant, live := c.meant.Multicast.Tables.Mask(s, mlid), c.live.Multicast.Tables.Mask(to, mlid)
		if len(meant)+len(live) == 0 {
			continue
		}
		old, now := c.meant.Fabric.Nums(meant), c.live.Fabric.Nums(live)
		x := Mask{mlid, without(old, now), without(now, old)}
		note(c, &p.MFT, &p.Masks, x, len(x.Missing)+len(x.Extra) > 0, len(meant) == 0, len(live) == 0)
	}
}

// without is the ports of a list that another one has not.
func without(list, other []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(port int) bool { return slices.Contains(other, port) })
}

// compareMaps compares the SL-to-VL maps between ports of a node that have cables in the
// meant state; without a cable none is ever used, and subnet managers write none.
func (c *comparison) compareMaps(n, to fabric.NodeID) {
	if to == fabric.NoNode {
		return
	}
	p, f := &c.per, c.meant.Fabric
	last := f.Node(n).NumPorts
	for out := fabric.PortNum(1); out <= last; out++ {
		if f.Peer(f.Port(n, out)) == fabric.NoPort {
			continue
		}
		for in := fabric.PortNum(0); in <= last; in++ {
			if in > 0 && (!f.IsSwitch(n) || f.Peer(f.Port(n, in)) == fabric.NoPort) || in == out {
				continue
			}
			meant, live := c.meant.SL2VL.At(in, f.Port(n, out)), c.live.SL2VL.At(in, c.live.Fabric.Port(to, out))
			note(c, &p.SL2VL, &p.Maps, Lanes{in, out, *meant, *live}, *meant != *live, false, false)
		}
	}
}
