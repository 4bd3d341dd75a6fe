package plugin

import (
	"fmt"
	"io"
	"time"

	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/report/metrics"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// meter counts what the plugin does, for the file metrics.file.
type meter struct {
	lastWriter[measured]
	scale bound.Scale // of the first routing, for the relative loads of all
}

// newMeter returns a meter that writes to file; trouble hears of errors.
func newMeter(file string, trouble func(Level, error)) *meter {
	return &meter{lastWriter: lastWriter[measured]{trouble: trouble, write: func(state *measured) error {
		err := files.Write(file, func(w io.Writer) error { return metrics.Write(w, "plugin", state) })
		if err != nil {
			err = fmt.Errorf("metrics are not written: %w", err)
		}
		return err
	}}}
}

// measured is the document whose numbers are the metrics ibweave_plugin_*.
type measured struct {
	Engine      string `json:"engine"`
	Verdict     string `json:"verdict"` // of the last tables
	Kept        uint64 `json:"routings_kept_total"`
	FromScratch uint64 `json:"routings_from_scratch_total"`
	Rebalanced  uint64 `json:"routings_rebalanced_total"`
	Unchanged   uint64 `json:"routings_unchanged_total"`
	Fallbacks   uint64 `json:"fallbacks_total"`  // routings that were left to OpenSM's next engine
	Held        int    `json:"held_back_cables"` // cables that come and go
	// Last is the last routing of a changed subnet.
	Last struct {
		Timestamp   int64   `json:"timestamp_seconds"`
		Snapshot    float64 `json:"snapshot_seconds"`
		Route       float64 `json:"route_seconds"`
		Verify      float64 `json:"verify_seconds"`
		All         float64 `json:"all_seconds"` // the three above, and writing
		LIDs        int     `json:"rerouted_lids"`
		Blocks      int     `json:"changed_blocks"`
		MaxRoutes   int64   `json:"max_routes_per_link"`
		IdleLinks   int     `json:"idle_links"`
		Findings    int     `json:"findings"`
		Switches    int     `json:"switches"`
		CAPorts     int     `json:"ca_ports"`
		Links       int     `json:"links"`
		MaxLID      uint16  `json:"max_lid"`
		MaxRelative float64 `json:"max_relative_load"` // by meter.scale; it is MaxRoutes if all cables have one rate
		Undecided   int     `json:"undecided_rules"`
		Lost        int     `json:"lost_nodes_and_cables"` // since the routing before: a node with all its cables, or a cable
		New         int     `json:"new_nodes_and_cables"`
		MovedLIDs   int     `json:"moved_lids"`
		Before      int64   `json:"max_routes_per_link_before"`
		Unreachable int64   `json:"unreachable_pairs"`
	} `json:"last_routing"`
}

// changed counts what has changed since the routing before.
func (m *meter) changed(c *change, before *verify.Result) {
	m.update(func(s *measured) {
		l := &s.Last
		l.Lost, l.New, l.MovedLIDs, l.Before = len(c.lost), len(c.came), c.moved, before.Balance.MaxRoutes
	})
}

// written counts tables that OpenSM has written.
func (m *meter) written(t *Tables) {
	m.update(func(s *measured) {
		s.Engine, s.Verdict = t.Engine, t.Verify.Verdict
		changed := t.Step.LIDs > 0 || t.Step.Changes.Blocks > 0 || t.Step.Adopted
		switch {
		case t.Rebalanced:
			s.Rebalanced++
		case !t.Step.Kept:
			s.FromScratch++
		case changed:
			s.Kept++
		default:
			s.Unchanged++
			return
		}
		v, l := t.Verify, &s.Last
		l.Timestamp = time.Now().Unix()
		l.Snapshot, l.Route, l.Verify, l.All = t.Timing.Snapshot.Seconds(), t.Timing.Route.Seconds(), t.Timing.Verify.Seconds(), t.Timing.Total().Seconds()
		l.LIDs, l.Blocks = t.Step.LIDs, t.Step.Changes.Blocks
		m.scale = m.scale.Or(v.Scale())
		l.MaxRoutes, l.IdleLinks, l.MaxRelative = v.Balance.MaxRoutes, v.Balance.IdleLinks, v.LoadOn(m.scale)
		l.Switches, l.CAPorts, l.Links, l.MaxLID = v.Fabric.Switches, v.Fabric.CAPorts, v.Fabric.Links, uint16(v.Fabric.MaxLID)
		l.Findings, l.Undecided, l.Unreachable = len(v.Findings), len(v.Undecided), v.Unicast.Unreachable
	})
}
