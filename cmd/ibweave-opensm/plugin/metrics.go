package plugin

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/report/metrics"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// meter counts what the plugin does, for the file metrics.file. Its methods return at once: a
// goroutine writes, and a slow disk costs states in between and no sweep.
type meter struct {
	file    string                   // "" for none
	trouble func(l Level, err error) // tells OpenSM's log that the file cannot be written; may be nil

	mu      sync.Mutex
	state   measured
	scale   bound.Scale // of the first routing: relative loads of all are on it
	writing bool
	stale   bool   // the state has changed since the goroutine took it
	told    string // of the last error, since the file was written last
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
	Held        int    `json:"held_back_cables"` // that come and go
	// Last is the last routing of a changed subnet.
	Last struct {
		Timestamp   int64   `json:"timestamp_seconds"`
		Snapshot    float64 `json:"snapshot_seconds"`
		Route       float64 `json:"route_seconds"`
		Verify      float64 `json:"verify_seconds"`
		All         float64 `json:"all_seconds"` // those and the writing
		LIDs        int     `json:"rerouted_lids"`
		Blocks      int     `json:"changed_blocks"`
		MaxRoutes   int64   `json:"max_routes_per_link"`
		IdleLinks   int     `json:"idle_links"`
		Findings    int     `json:"findings"`
		Switches    int     `json:"switches"`
		CAPorts     int     `json:"ca_ports"`
		Links       int     `json:"links"`
		MaxLID      uint16  `json:"max_lid"`
		MaxRelative float64 `json:"max_relative_load"` // on meter.scale; MaxRoutes where all cables have one rate
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

// fellBack counts a routing that was left to OpenSM's next engine.
func (m *meter) fellBack() { m.update(func(s *measured) { s.Fallbacks++ }) }

// held sets how many cables are not used at the moment, as they come and go.
func (m *meter) held(n int) { m.update(func(s *measured) { s.Held = n }) }

// update changes the state and has it written.
func (m *meter) update(change func(s *measured)) {
	if m.file == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.state)
	m.stale = true
	if !m.writing {
		m.writing = true
		go m.write()
	}
}

// write writes states until the last one is in the file.
func (m *meter) write() {
	for {
		m.mu.Lock()
		if m.writing = m.stale; !m.stale {
			m.mu.Unlock()
			return
		}
		m.stale = false
		state := m.state
		m.mu.Unlock()
		err := files.Write(m.file, func(w io.Writer) error { return metrics.Write(w, "plugin", &state) })
		m.tell(err)
	}
}

// tell tells OpenSM's log of an error of writing, nil for none, unless it was told of the same before.
func (m *meter) tell(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != m.told && said != "" && m.trouble != nil {
		m.trouble(LogError, fmt.Errorf("metrics are not written: %w", err))
	}
	m.told = said
}

// close keeps a goroutine that still writes from OpenSM's log, which may be gone.
func (m *meter) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trouble = nil
}
