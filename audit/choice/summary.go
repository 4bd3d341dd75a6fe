package choice

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
)

// Top returns the switch on top of a routing's order; nil where there is none.
func Top(r *lft.Routing) *verify.SwitchRef {
	s := slices.Index(r.Order, 0)
	if s < 0 {
		return nil
	}
	ref := verify.SwitchOf(r.Fabric, fabric.NodeID(s))
	return &ref
}

// Lanes describes which virtual lanes paths use, and how the setting gets into a
// fabric.
type Lanes struct {
	VLs        int    `json:"vls"`         // data VLs in use
	SL2VL      bool   `json:"sl2vl"`       // whether there are SL-to-VL tables
	PathSLs    bool   `json:"path_sls"`    // whether paths have SLs of their own
	PluginOnly string `json:"plugin_only"` // why OpenSM's options cannot carry them; "" when they can
}

// LanesOf returns the lanes of tables.
func LanesOf(r *compile.Result) Lanes {
	s := Lanes{VLs: 1, SL2VL: r.Routing.SL2VL != nil, PathSLs: r.Routing.PathSLs != nil}
	if s.SL2VL {
		s.VLs = r.Routing.SL2VL.VLs()
	}
	if _, err := outdir.QoSOptions(r); err != nil {
		s.PluginOnly = err.Error()
	}
	return s
}

// Trees has the cost of multicast if every sender sends one packet. Links are
// those between switches, each direction apart.
type Trees struct {
	Groups     int            `json:"groups"`
	MLIDs      int            `json:"mlids"`
	Links      int64          `json:"links"` // cables in all trees together
	MaxLinks   int            `json:"max_links"`
	MaxDepth   int            `json:"max_depth"`            // links on the longest way
	MaxCopies  int64          `json:"max_copies_per_link"`  // on the most loaded link
	MeanCopies float64        `json:"mean_copies_per_link"` // over all links of the fabric
	HostCopies int64          `json:"max_copies_per_host"`  // that one end port gets
	Crossings  int64          `json:"link_crossings"`
	Unicast    int64          `json:"unicast_link_crossings"` // with a unicast packet from each sender to each receiver
	Hottest    *verify.Hop    `json:"max_link,omitempty"`
	ByScheme   map[string]int `json:"trees_by_scheme"`
	Unserved   []string       `json:"unserved,omitempty"` // groups without an MLID, left to repeated unicast
}

// TreesOf returns the cost of the trees of tables; nil without groups.
func TreesOf(r *compile.Result) *Trees {
	if r.Plan == nil {
		return nil
	}
	c, f := r.Cost, r.Routing.Fabric
	s := &Trees{
		MLIDs: len(r.Plan.Tables.MLIDs()), Links: c.Links, MaxCopies: c.MaxLink, MeanCopies: c.MeanLink, HostCopies: c.MaxHost,
		Crossings: c.Crossings, Unicast: c.Unicast, ByScheme: make(map[string]int),
	}
	groups := make(map[int]bool)
	for i := range r.Plan.Trees {
		t := &r.Plan.Trees[i]
		groups[t.Group] = true
		s.ByScheme[t.Scheme]++
		s.MaxLinks, s.MaxDepth = max(s.MaxLinks, c.Trees[i].Links), max(s.MaxDepth, c.Trees[i].Depth)
	}
	s.Groups = len(groups)
	for _, i := range r.Plan.Unserved {
		s.Unserved = append(s.Unserved, r.Groups[i].Name)
	}
	if p := c.Hottest; p != fabric.NoPort {
		h := verify.HopOf(f, p)
		s.Hottest = &h
	}
	return s
}

// LIDs counts the LIDs of end ports.
type LIDs struct {
	Policy string     `json:"policy"`
	LMC    uint8      `json:"lmc"`
	Kept   int        `json:"kept"`  // end ports that had their LID before
	Given  int        `json:"given"` // end ports with a new LID
	Max    fabric.LID `json:"max"`
}

// CountLIDs compares the LIDs of g with those that f had.
func CountLIDs(f, g *fabric.Fabric, policy string) LIDs {
	s := LIDs{Policy: policy, Max: g.MaxLID()}
	g.EndPorts(func(p fabric.PortID) {
		if g.LID(p) == f.LID(p) {
			s.Kept++
		} else {
			s.Given++
		}
		s.LMC = max(s.LMC, g.LMC(p))
	})
	return s
}

// Print writes how many trees of which scheme there are, and what they cost.
func (t *Trees) Print(b *text.Sheet) {
	schemes := text.Each(slices.Sorted(maps.Keys(t.ByScheme)), func(name string) string { return text.Grouped(t.ByScheme[name]) + " " + name })
	separator := ""
	if len(schemes) > 0 {
		separator = ": "
	}
	b.Row("trees", "%s on %s%s%s", text.CountGrouped(t.Groups, "group", "groups"), text.CountGrouped(t.MLIDs, "MLID", "MLIDs"), separator, strings.Join(schemes, ", "))
	b.Row("", "at most %s in a tree, and %d from a sender to a receiver", text.CountGrouped(t.MaxLinks, "link", "links"), t.MaxDepth)
	most := ""
	if t.Hottest != nil {
		most = fmt.Sprintf("; %s on the most loaded link, %s", text.CountGrouped(t.MaxCopies, "copy", "copies"), t.Hottest)
	}
	b.Row("", "each sender once: %s link crossings, %s with unicast%s", text.Grouped(t.Crossings), text.Grouped(t.Unicast), most)
}
