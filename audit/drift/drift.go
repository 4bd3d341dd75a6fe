// Package drift compares the tables that switches have, as dumped or read from
// a live subnet, with those that they were meant to have, from a directory of
// compile: linear and multicast forwarding tables and SL-to-VL tables. It
// makes no promise to other modules.
//
// Package diff is for a planned change, where a new LID of a port changes no entries. Drift is not
// planned: here entries are compared as the switches have them, by LID, MLID and port number, and
// switches match by GUID only.
package drift

import (
	"context"
	"errors"
	"slices"

	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// DefaultSamples is how many entries of a switch and table are listed.
const DefaultSamples = 20

// Counts counts the entries of a table by how they differ.
type Counts struct {
	Compared int `json:"compared"` // entries that either side has
	Missing  int `json:"missing"`  // meant and not there
	Extra    int `json:"extra"`    // there and not meant
	Changed  int `json:"changed"`  // there, and other than meant
}

// Differ returns how many differ.
func (c *Counts) Differ() int { return c.Missing + c.Extra + c.Changed }

// Entry is an entry of a linear forwarding table that differs; fabric.NoPath means
// that there is none.
type Entry struct {
	LID   fabric.LID     `json:"lid"`
	Meant fabric.PortNum `json:"meant"`
	Live  fabric.PortNum `json:"live"`
}

// Mask is the mask of an MLID that differs: the ports that only the meant mask has, and those that
// only the live one has; ascending.
type Mask struct {
	MLID    fabric.LID `json:"mlid"`
	Missing []int      `json:"missing"`
	Extra   []int      `json:"extra"`
}

// Lanes is an SL-to-VL map that differs: for packets that enter by port In, 0 for the switch's own,
// and leave by Out.
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

// Report has the findings of Compare.
type Report struct {
	Switches int `json:"switches"` // that were meant to have tables
	Drifted  int `json:"drifted"`  // of them, those whose tables differ
	Unread   int `json:"unread"`   // of them, those whose tables are not known
	// LFT counts entries, MFT masks of a switch for an MLID, and SL2VL maps of two
	// ports; nil for what was not compared.
	LFT   *Counts `json:"lft"`
	MFT   *Counts `json:"mft"`
	SL2VL *Counts `json:"sl2vl"`
	// Choices counts entries of private LFTs: in LFT 0 those with a choice of ports, in others all.
	Choices *Counts `json:"adaptive"`
	// Loops counts the MLIDs and LIDs whose packets loop, among those that have a finding: at most
	// verify.DefaultFindings for each rule.
	Loops int `json:"loops"`
	// Findings begin with multicast packets that loop, then unicast packets that
	// do, then credit loops, then the rest by switch; never nil.
	Findings  []verify.Finding `json:"findings"`
	PerSwitch []Switch         `json:"per_switch"` // those that drifted, by GUID; never nil
}

// Equal returns true if everything that was compared is as meant, and everything could be read.
// MLIDs that only the live tables have are ignored.
func (r *Report) Equal() bool { return r.Worst() <= verify.Note }

// Worst is the gravest finding's severity, verify.Clean when there is none.
func (r *Report) Worst() verify.Severity { return (&verify.Result{Findings: r.Findings}).Worst() }

// comparison is a Compare under way.
type comparison struct {
	*diff.Match
	meant, live *state.State
	samples     int
	r           *Report
	per         []Switch // by node of the meant fabric
	unread      []string // by node of the meant fabric: why its tables are not known, "" if they are
}

// Compare compares the live tables with those that were meant. The fabrics may
// be one, if a dump does not tell the cables, or two that were found at
// different times. samples bounds the entries that are listed for each switch
// and table; all are counted. It takes O(entries of all tables), and at most
// twice the time of verify.
//
// Errors: ctx's own, and tables that are not of their fabric.
func Compare(ctx context.Context, meant, live *state.State, samples int) (*Report, error) {
	if err := errors.Join(meant.Check(), live.Check()); err != nil {
		return nil, err
	}
	c := &comparison{
		Match: diff.MatchGUIDs(meant.Fabric, live.Fabric), meant: meant, live: live, samples: samples,
		r: &Report{Switches: meant.Fabric.NumSwitches(), Findings: []verify.Finding{}, PerSwitch: []Switch{}},
	}
	if c.Old != c.New {
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

// compareTables compares the tables of all nodes, and makes findings node by node.
func (c *comparison) compareTables(ctx context.Context) error {
	countIf := func(both bool) *Counts {
		if both {
			return &Counts{}
		}
		return nil
	}
	r, f := c.r, c.Old
	r.LFT = countIf(c.meant.Tables != nil && c.live.Tables != nil)
	r.MFT = countIf(c.meant.Multicast != nil && c.live.Multicast != nil)
	r.SL2VL = countIf(c.meant.SL2VL != nil && c.live.SL2VL != nil)
	r.Choices = countIf(c.meant.Adaptive != nil && c.live.Adaptive != nil)
	c.per, c.unread = make([]Switch, f.NumNodes()), make([]string, f.NumNodes())
	for n := range c.per {
		c.per[n] = Switch{SwitchRef: verify.SwitchOf(f, fabric.NodeID(n)), Entries: []Entry{}, Masks: []Mask{}, Maps: []Lanes{}, Sets: []Choice{}}
		c.unread[n] = c.findUnread(fabric.NodeID(n))
	}
	for _, s := range f.Switches() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.unread[s] == "" {
			c.compareEntries(s, c.Node[s])
			c.compareChoices(s, c.Node[s])
		}
	}
	c.compareMasks()
	c.compareMaps()
	for n := range c.per {
		p := &c.per[n]
		differ := 0
		for k, sum := range [...]*Counts{r.LFT, r.MFT, r.SL2VL, r.Choices} {
			n := p.counts()[k]
			if differ += n.Differ(); sum != nil {
				*sum = Counts{sum.Compared + n.Compared, sum.Missing + n.Missing, sum.Extra + n.Extra, sum.Changed + n.Changed}
			}
		}
		isSwitch := f.IsSwitch(fabric.NodeID(n))
		p.Empty = p.LFT.Missing > 0 && p.LFT.Missing == p.LFT.Compared
		switch {
		case differ > 0:
			if isSwitch {
				r.Drifted++
			}
			p.Labels = f.PortLabels(fabric.NodeID(n))
			r.PerSwitch = append(r.PerSwitch, *p)
			c.reportDifferences(p)
		case isSwitch && c.unread[n] != "":
			c.addUnread(p, c.unread[n])
		}
	}
	return nil
}

// findUnread returns why the tables of a node are not known in the live state; "" if they are.
func (c *comparison) findUnread(n fabric.NodeID) string {
	switch to := c.Node[n]; {
	case to == fabric.NoNode:
		return "is not in the live fabric"
	case c.New.Node(to).NumPorts != c.Old.Node(n).NumPorts:
		return "has another number of ports in the live fabric"
	case c.Old.IsSwitch(n) && c.live.Unread != nil && c.live.Unread[to]:
		return "could not be read"
	}
	return ""
}

// note counts an entry x of a table. If it differs it adds x to list, up to
// c.samples. extra is set if only the live side has the entry, missing if only
// the meant side has it.
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
	if c.r.LFT == nil {
		return
	}
	meant, live := c.meant.Tables.Row(s), c.live.Tables.Row(to)
	p := &c.per[s]
	for lid := fabric.LID(1); int(lid) < max(len(meant), len(live)); lid++ {
		x := Entry{lid, lft.Entry(meant, lid), lft.Entry(live, lid)}
		if x.Meant == fabric.NoPath && x.Live == fabric.NoPath {
			continue
		}
		note(c, &p.LFT, &p.Entries, x, x.Meant != x.Live, x.Meant == fabric.NoPath, x.Live == fabric.NoPath)
	}
}

// compareChoices compares the choices of an adaptive switch. It skips entries of private LFT 0 that
// are static in both states: they are in the linear table.
func (c *comparison) compareChoices(s, to fabric.NodeID) {
	if c.r.Choices == nil {
		return
	}
	p, meant, live := &c.per[s], c.meant.Adaptive, c.live.Adaptive
	for plft := range max(len(meant.PLFTs), len(live.PLFTs)) {
		for lid := fabric.LID(1); lid <= max(c.Old.MaxLID(), c.New.MaxLID()); lid++ {
			x := Choice{plft, lid, meant.Choice(plft, s, lid), live.Choice(plft, to, lid)}
			if most := max(x.Meant.Ports.Len(), x.Live.Ports.Len()); most == 0 || most == 1 && plft == 0 {
				continue
			}
			note(c, &p.Choices, &p.Sets, x, x.Meant != x.Live, false, false)
		}
	}
}

// compareMasks compares the masks of the MLIDs that the meant state has.
func (c *comparison) compareMasks() {
	if c.r.MFT == nil {
		return
	}
	for _, mlid := range c.meant.Multicast.Tables.MLIDs() {
		c.EachMask(c.meant.Multicast.Tables, c.live.Multicast.Tables, mlid, func(to fabric.NodeID, meant, live []int) {
			if s := c.Back[to]; c.unread[s] == "" {
				p, x := &c.per[s], Mask{mlid, without(meant, live), without(live, meant)}
				note(c, &p.MFT, &p.Masks, x, len(x.Missing)+len(x.Extra) > 0, len(meant) == 0, len(live) == 0)
			}
		})
	}
}

// without returns the ports of list that other lacks.
func without(list, other []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(port int) bool { return slices.Contains(other, port) })
}

// compareMaps compares the SL-to-VL maps between ports that have cables in both states. Other maps
// are never used, and subnet managers do not write them.
func (c *comparison) compareMaps() {
	if c.r.SL2VL == nil {
		return
	}
	c.EachMap(c.meant.SL2VL, c.live.SL2VL, func(in fabric.PortNum, out, _ fabric.PortID, meant, live *lft.VLMap) {
		n, num := c.Old.Owner(out), c.Old.Num(out)
		if p := &c.per[n]; in != num && c.unread[n] == "" {
			note(c, &p.SL2VL, &p.Maps, Lanes{in, num, *meant, *live}, *meant != *live, false, false)
		}
	})
}
