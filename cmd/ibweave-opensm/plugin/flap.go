package plugin

import (
	"fmt"
	"slices"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// FlapConfig says when a cable between switches comes and goes too often to be used.
type FlapConfig struct {
	// A cable lost Count times within Window is unused until up for Hold. Count 0 turns this off.
	Count        int
	Window, Hold time.Duration
}

// wire is a cable between two switches by the node GUIDs and numbers of its ports.
type wire struct {
	from, to       fabric.GUID
	fromNum, toNum fabric.PortNum
}

func wireOf(f *fabric.Fabric, p fabric.PortID) wire {
	q := f.Peer(p)
	return wire{f.Node(f.Owner(p)).GUID, f.Node(f.Owner(q)).GUID, f.Num(p), f.Num(q)}
}

func hasWire(f *fabric.Fabric, w wire) bool {
	a, ok := f.SwitchByGUID(w.from)
	b, too := f.SwitchByGUID(w.to)
	return ok && too && w.fromNum <= f.Node(a).NumPorts && w.toNum <= f.Node(b).NumPorts && f.Peer(f.Port(a, w.fromNum)) == f.Port(b, w.toNum)
}

// flaps remembers cables that come and go. It holds back no cables of hosts,
// whose ports have LIDs, and no cable that alone joins some switches to others.
type flaps struct {
	config FlapConfig
	before *fabric.Fabric // of the last call of damp, cables held back included
	lost   map[wire]*losses
	next   time.Time // when the first cable held back may be used, zero for none
	held   int       // cables held back
}

// losses remembers when a cable was lost.
type losses struct {
	at         []time.Time // the last Count times
	up         time.Time   // since when it is up again, if it is
	hold, told bool        // hold it back until it has been up for Hold; the logs name it
}

// damp returns f without the cables that are held back, and lines about them for the logs.
func (x *flaps) damp(f *fabric.Fabric, now time.Time) (used *fabric.Fabric, said []string) {
	before := x.before
	x.before, x.held, x.next = f, 0, time.Time{}
	if before == nil {
		return f, nil
	}
	eachLostCable(before, f, func(p fabric.PortID) {
		if before.IsSwitch(before.Owner(p)) && before.IsSwitch(before.Owner(before.Peer(p))) {
			x.lose(wireOf(before, p), now)
		}
	})
	for w, l := range x.lost { // a cable is up for as long as both switches have had it
		switch {
		case !hasWire(before, w):
			l.up = now
			fallthrough
		case l.hold, now.Sub(l.at[len(l.at)-1]) <= x.config.Window:
		default:
			delete(x.lost, w)
		}
	}
	joined := graph.NewUnionFind[fabric.NodeID](f.NumSwitches())
	join := func(p fabric.PortID) bool { return joined.Join(f.Owner(p), f.Owner(f.Peer(p))) }
	say := func(p fabric.PortID, format string, args ...any) {
		said = append(said, "cable "+f.PortName(p)+" to "+f.PortName(f.Peer(p))+" "+fmt.Sprintf(format, args...))
	}
	var back, out []fabric.PortID
	up := func(p fabric.PortID) time.Time { return x.lost[wireOf(f, p)].up }
	for _, s := range f.Switches() {
		ports, to := f.SwitchLinks(s)
		for i, p := range ports {
			if to[i] < s {
				continue
			}
			l := x.lost[wireOf(f, p)]
			if l != nil && l.hold && now.Sub(l.up) < x.config.Hold {
				back = append(back, p)
				continue
			}
			join(p)
			if l != nil && l.hold {
				l.hold, l.told = false, false
				say(p, "has been up for %v: used again", x.config.Hold)
			}
		}
	}
	slices.SortStableFunc(back, func(p, q fabric.PortID) int { return up(p).Compare(up(q)) })
	for _, p := range back {
		l := x.lost[wireOf(f, p)]
		switch {
		case join(p):
			l.hold, l.told = false, false
			say(p, "comes and goes, and is used all the same: no other joins its switches to the rest")
			continue
		case x.held == 0:
			x.next = l.up.Add(x.config.Hold) // the earliest, as back is sorted
		}
		x.held++
		out = append(out, p)
		if !l.told {
			l.told = true
			say(p, "was lost %d times within %v: not used until it has been up for %v", len(l.at), x.config.Window, x.config.Hold)
		}
	}
	if x.held > 0 {
		f = f.Without(out...)
	}
	return f, said
}

// lose notes that a cable is lost now, and has it held back if that was too often.
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

// holdBack returns f without cables that are held back for a
// time, and makes OpenSM sweep when the first may be used again.
func (p *Plugin) holdBack(f *fabric.Fabric) *fabric.Fabric {
	if p.config.Flap.Count == 0 {
		return f
	}
	p.routing.Lock()
	defer p.routing.Unlock()
	f, said := p.flaps.damp(f, time.Now())
	for _, line := range said {
		p.tell(line)
	}
	held := p.flaps.held
	p.meter.update(func(s *measured) { s.Held = held })
	if p.again != nil {
		p.again.Stop()
	}
	if held > 0 {
		p.again = time.AfterFunc(time.Until(p.flaps.next), func() {
			p.routing.Lock()
			defer p.routing.Unlock()
			if p.host.Sweep != nil { // else OpenSM is ending
				p.host.Sweep()
			}
		})
	}
	return f
}

// isDue returns true if a cable has been held back long
// enough: OpenSM must route again.
func (p *Plugin) isDue() bool {
	p.routing.Lock()
	defer p.routing.Unlock()
	return p.flaps.held > 0 && !time.Now().Before(p.flaps.next)
}

// tryAll routes s with all cables, since those that are not held back do not
// suffice. It returns nil if none is held back, or if that fails, too.
func (p *Plugin) tryAll(engine int, s *Snapshot) *Tables {
	p.routing.Lock()
	var held []*losses
	for _, l := range p.flaps.lost {
		if p.flaps.held > 0 && l.hold {
			l.hold = false
			held = append(held, l)
		}
	}
	p.routing.Unlock()
	if held == nil {
		return nil
	}
	t, err := p.tryRoute(engine, s)
	p.routing.Lock()
	defer p.routing.Unlock()
	for _, l := range held {
		l.hold, l.told = err != nil, err != nil && l.told
	}
	if err != nil {
		return nil
	}
	p.tell("cables that come and go are used all the same, as else not all pairs have routes")
	return t
}
