package plugin

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// FlapConfig has cables between switches held back that come and go.
type FlapConfig struct {
	// A cable that was lost Count times within Window is not used until it has been up for Hold; 0 is never.
	Count        int
	Window, Hold time.Duration
}

// end is a port of a switch.
type end struct {
	guid fabric.GUID
	num  uint8
}

func (e end) compare(o end) int {
	return cmp.Or(cmp.Compare(e.guid, o.guid), cmp.Compare(e.num, o.num))
}

// wire is a cable between two switches by its ends, the least first.
type wire [2]end

func (w wire) compare(o wire) int { return cmp.Or(w[0].compare(o[0]), w[1].compare(o[1])) }

// flaps is what is remembered of cables that come and go. Cables of hosts are never held back, since their ports
// have LIDs, nor is the last cable that joins some switches to others.
type flaps struct {
	config   FlapConfig
	switches map[fabric.GUID]int32 // of the last snapshot: index in Nodes
	wires    map[wire]bool         // of the last snapshot
	lost     map[wire]*losses
	held     []wire // that are not used at the moment
}

// losses is what is remembered of a cable that was lost.
type losses struct {
	at   []time.Time // the last few
	up   time.Time   // since when it is there again, if it is
	hold bool        // it is to be held back until it is up for long enough
	told bool        // and the logs have it
}

// damp marks cables of s that are held back, and returns what the logs are to say. Snapshots come in their order;
// the same one may come again.
func (x *flaps) damp(s *Snapshot, now time.Time, labels nodeLabels) (said []string) {
	say := func(w wire, format string, args ...any) {
		a, b := &s.Nodes[x.switches[w[0].guid]], &s.Nodes[x.switches[w[1].guid]]
		said = append(said, fmt.Sprintf("cable from %s to %s ", labels.portName(a, int(w[0].num)), labels.portName(b, int(w[1].num)))+fmt.Sprintf(format, args...))
	}
	before := x.wires
	x.find(s)
	for w := range before {
		_, a := x.switches[w[0].guid]
		_, b := x.switches[w[1].guid]
		if a && b && !x.wires[w] { // without its switch a cable is as good as any
			x.lose(w, now)
		}
	}
	var back []wire
	for w, l := range x.lost {
		is := x.wires[w]
		if is && !before[w] {
			l.up = now
		}
		switch {
		case is && l.hold && now.Sub(l.up) < x.config.Hold:
			back = append(back, w)
		case is && l.hold:
			l.hold, l.told = false, false
			say(w, "has been up for %v: used again", x.config.Hold)
		}
		if !l.hold && now.Sub(l.at[len(l.at)-1]) > x.config.Window {
			delete(x.lost, w)
		}
	}
	x.held = nil
	joined := graph.NewUnionFind[int32](len(s.Nodes))
	join := func(w wire) bool { return joined.Join(x.switches[w[0].guid], x.switches[w[1].guid]) }
	for w := range x.wires {
		if l := x.lost[w]; l == nil || !l.hold {
			join(w)
		}
	}
	slices.SortFunc(back, func(a, b wire) int { return cmp.Or(x.lost[a].up.Compare(x.lost[b].up), a.compare(b)) })
	for _, w := range back {
		if join(w) {
			x.lost[w].hold, x.lost[w].told = false, false
			say(w, "comes and goes, and is used all the same: no other joins its switches to the rest")
			continue
		}
		x.mark(s, w, true)
		x.held = append(x.held, w)
		if l := x.lost[w]; !l.told {
			l.told = true
			say(w, "was lost %d times within %v: not used until it has been up for %v", len(l.at), x.config.Window, x.config.Hold)
		}
	}
	slices.Sort(said)
	return said
}

// find takes the switches and the cables between them from a snapshot.
func (x *flaps) find(s *Snapshot) {
	x.switches, x.wires = make(map[fabric.GUID]int32, len(x.switches)), make(map[wire]bool, len(x.wires))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.isSwitch() {
			continue
		}
		x.switches[n.GUID] = int32(i)
		for p, at := range s.portsOf(i) {
			if p == 0 || at.Peer < 0 {
				continue
			}
			peer, err := s.peer(i, p)
			if err != nil || at.Sick || peer.Sick || !s.Nodes[at.Peer].isSwitch() {
				continue
			}
			if w := (wire{{n.GUID, uint8(p)}, {s.Nodes[at.Peer].GUID, at.Num}}); w[0].compare(w[1]) < 0 {
				x.wires[w] = true
			}
		}
	}
}

// mark sets whether a cable of s is held back.
func (x *flaps) mark(s *Snapshot, w wire, held bool) {
	for _, e := range w {
		s.Ports[s.Nodes[x.switches[e.guid]].First+int32(e.num)].Held = held
	}
}

// lose notes that a cable was lost.
func (x *flaps) lose(w wire, now time.Time) {
	l := x.lost[w]
	if l == nil {
		l = new(losses)
		x.lost[w] = l
	}
	l.at = append(l.at, now)
	l.at = l.at[max(0, len(l.at)-x.config.Count):]
	l.hold = l.hold || len(l.at) == x.config.Count && now.Sub(l.at[0]) <= x.config.Window
}

// wait is how long it takes until a cable that is held back may be used; false if none is.
func (x *flaps) wait(now time.Time) (time.Duration, bool) {
	if len(x.held) == 0 {
		return 0, false
	}
	first := slices.MinFunc(x.held, func(a, b wire) int { return x.lost[a].up.Compare(x.lost[b].up) })
	return x.lost[first].up.Add(x.config.Hold).Sub(now), true
}

// release has all cables of s used, and returns how many were not.
func (x *flaps) release(s *Snapshot) int {
	n := len(x.held)
	for _, w := range x.held {
		x.lost[w].hold, x.lost[w].told = false, false
		x.mark(s, w, false)
	}
	x.held = nil
	return n
}

// holdBack marks cables of s that are held back for a time, and has OpenSM sweep when the first of them may be
// used again.
func (p *Plugin) holdBack(s *Snapshot) {
	if p.config.Flap.Count == 0 {
		return
	}
	p.routing.Lock()
	defer p.routing.Unlock()
	for _, line := range p.flaps.damp(s, time.Now(), p.labels) {
		p.log.Warn(line)
		p.host.Log(LogInfo, line)
	}
	p.meter.held(len(p.flaps.held))
	if p.again != nil {
		p.again.Stop()
		p.again = nil
	}
	if d, ok := p.flaps.wait(time.Now()); ok {
		p.again = time.AfterFunc(d, p.sweep)
	}
}

// sweep has OpenSM sweep, unless it is ending.
func (p *Plugin) sweep() {
	p.routing.Lock()
	defer p.routing.Unlock()
	if p.host.Sweep != nil {
		p.host.Sweep()
	}
}

// useAll has cables used that holdBack marked, since no tables without them join all, and returns false if there
// were none.
func (p *Plugin) useAll(s *Snapshot) bool {
	p.routing.Lock()
	defer p.routing.Unlock()
	n := p.flaps.release(s)
	if n == 0 {
		return false
	}
	line := text.Count(n, "cable that comes and goes is", "cables that come and go are") + " used all the same, as else not all pairs have routes"
	p.log.Warn(line)
	p.host.Log(LogInfo, line)
	p.meter.held(0)
	return true
}
