package experiment

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/state"
)

// How switches choose a port.
const (
	Static = "static" // they do not
	Free   = "free"
	HBF    = "hbf"
	AsRead = "far" // each as a file says
)

// Routing is one of the routings that are compared. If there is only one, its parts have no names.
type Routing struct {
	Engine    string
	Fitted    bool   // the tables are made for the jobs
	VLs       int    // 0 for those of the tables
	Choice    string // Static, Free, HBF or AsRead; "" if all are Static
	Multicast string // scheme, or sharp; "" for unicast
	SLs       int    // that messages are spread over, as sim.Traffic.SLs
	Net       sim.Network
	Routes    *lft.Routing
}

// New returns a routing of r on vls VLs; 0 for those of the tables. Messages
// are spread over sls SLs; if sls is below 0, over all VLs, unless the tables
// have the SL of each path.
func New(r *lft.Routing, vls, sls int, router sim.Router) Routing {
	if sls < 0 && vls > 1 && r.PathSLs == nil {
		sls = vls
	}
	return Routing{VLs: vls, SLs: max(sls, 0), Routes: r, Net: sim.Network{State: *state.Of(r), Router: router}}
}

// Name describes the routing by those of its fields that are set; it is "" if none is.
func (r *Routing) Name() string {
	var parts []string
	switch {
	case r.Fitted:
		parts = append(parts, r.Engine+" for the jobs")
	case r.Engine != "":
		parts = append(parts, r.Engine)
	}
	if r.VLs > 0 {
		parts = append(parts, text.Count(r.VLs, "VL", "VLs"))
	}
	if r.Choice != "" {
		parts = append(parts, r.Choice)
	}
	if r.Multicast == sharp {
		parts = append(parts, sharp)
	} else if r.Multicast != "" {
		parts = append(parts, "mcast "+r.Multicast)
	}
	return strings.Join(parts, ", ")
}

func (r *Routing) point() Point { return Point{Routing: r.Name(), Engine: r.Engine, VLs: r.VLs} }

func (r *Run) routing(name string) *Routing {
	return &r.Routings[slices.IndexFunc(r.Routings, func(x Routing) bool { return x.Name() == name })]
}

// WithLanes returns a copy of r with SL-to-VL tables that spread the SLs over vls VLs. It is
// an error if r has path SLs or several VLs.
func WithLanes(r *lft.Routing, vls int) (*lft.Routing, error) {
	if r.PathSLs != nil || r.SL2VL != nil && r.SL2VL.VLs() > 1 {
		return nil, errors.New("the tables have VLs of their own: want -t TOPOLOGY and -e ENGINE, or tables of one VL")
	}
	lanes := *r
	lanes.SL2VL = lft.NewSL2VL(r.Fabric, lft.IdentityVLs(vls))
	return &lanes, nil
}

// AddChoices returns each static routing with each of the choices. Switches
// choose among the ports in given or, if that is nil, in adaptive.Widen. All
// keep the static ports and lanes.
func AddChoices(ctx context.Context, static []Routing, choices []string, given *adaptive.Tables) ([]Routing, error) {
	states := map[string]adaptive.State{Static: adaptive.Static, Free: adaptive.Free, HBF: adaptive.HBF}
	var list []Routing
	for _, x := range static {
		tables := given
		if tables == nil {
			var err error
			if tables, err = adaptive.Widen(ctx, x.Routes); err != nil {
				return nil, err
			}
		}
		for _, choice := range choices {
			x.Choice = choice
			switch state, known := states[choice]; {
			case !known:
				x.Net.Adaptive = tables
			case state != adaptive.Static || len(tables.PLFTs) > 1: // each PLFT has its own static ports
				x.Net.Adaptive = tables.WithState(state)
			}
			list = append(list, x)
		}
	}
	return list, nil
}
