package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/routing/fattree"
	"github.com/ibweave/ibweave/routing/layered"
	"github.com/ibweave/ibweave/updown"
)

// Engine is a row of the table of engines. verify checks that its results keep the Guarantee
// that it declares.
type Engine struct {
	lft.Engine
	Aliases []string
	// Counterparts are engines of OpenSM that this one replaces; EngineByName finds it by them.
	Counterparts []string
	Domain       string // the fabrics that it routes
	Summary      string
}

// Engines is the table of engines, in the order of the help texts.
var Engines = []Engine{
	{
		Engine:       updown.Engine{},
		Aliases:      []string{"updown"},
		Counterparts: []string{"up_down"},
		Domain:       "any fabric",
		Summary:      "up*/down* on a strict order of the switches, loads balanced over the whole fabric",
	},
	{
		Engine:  lft.Minhop{},
		Domain:  "any fabric",
		Summary: "shortest paths, loads balanced over the whole fabric",
	},
	{
		Engine:       layered.Engine{},
		Counterparts: []string{"dfsssp", "lash", "nue"},
		Domain:       "any fabric",
		Summary:      "shortest paths, loads balanced over the whole fabric, on as many VLs as that takes",
	},
	{
		Engine:       fattree.Engine{},
		Counterparts: []string{"ftree"},
		Domain:       "fat trees, damaged ones too",
		Summary:      "by destination (d-mod-k): no contention in shifts of the hosts on full trees",
	},
	{
		Engine:  updown.SPAM{},
		Domain:  "any fabric",
		Summary: "up channels, then down cross channels, then a spanning tree down (Libeskind-Hadas et al.)",
	},
	{
		Engine:  mesh.XY{},
		Aliases: []string{"dor"},
		Domain:  "meshes, tori and hypercubes",
		Summary: "dimension-order routing; rings of four switches or more take two VLs",
	},
	{
		Engine:  mesh.NegativeFirst,
		Domain:  "meshes and hypercubes",
		Summary: "all hops towards smaller coordinates first",
	},
	{
		Engine:  mesh.WestFirst,
		Domain:  "meshes and hypercubes",
		Summary: "hops towards smaller coordinates of the first dimension first",
	},
	{
		Engine:  mesh.NorthLast,
		Domain:  "meshes and hypercubes",
		Summary: "hops towards greater coordinates of the last dimension last",
	},
	{
		Engine:  banyan.Engine{},
		Domain:  "banyan networks",
		Summary: "destination tags, one bit of the address at each stage; takes two VLs",
	},
}

// Promise states the engine's guarantee in words.
func (e *Engine) Promise() string {
	g := e.Guarantee()
	var s []string
	if g.Has(lft.Reachable) {
		s = append(s, "all pairs reachable")
	}
	if g.Has(lft.Minimal) {
		s = append(s, "shortest paths")
	}
	if g.Has(lft.NoCreditLoop) {
		s = append(s, "no credit loop")
	}
	return strings.Join(s, ", ")
}

// IsCounterpart returns a sentence that names this engine if name is one of its Counterparts in
// OpenSM, else "".
func (e *Engine) IsCounterpart(name string) string {
	if !slices.Contains(e.Counterparts, name) {
		return ""
	}
	return fmt.Sprintf("%s is our counterpart of OpenSM's %s", e.Name(), name)
}

// EngineByName finds an engine by its name, an alias, or the name of OpenSM's counterpart.
func EngineByName(name string) (*Engine, error) {
	var names []string
	for i := range Engines {
		e := &Engines[i]
		if e.Name() == name || slices.Contains(e.Aliases, name) || slices.Contains(e.Counterparts, name) {
			return e, nil
		}
		names = append(names, e.Name())
	}
	return nil, fmt.Errorf("no engine %q: want one of %s", name, strings.Join(names, ", "))
}
