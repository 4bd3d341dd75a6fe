package move

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// search finds the steps of a job. After each step it begins again with the first kind of work,
// since ports may be free now. Of one kind it takes as much into a step as is safe: all, else half,
// and so on.
func (p *planner) search() error {
	for {
		var refused []Refusal
		free, moves := p.arrivals()
		done := false
		var err error
		for _, units := range [][]Batch{free, moves, p.removals()} {
			if done, err = p.takeSome(units, &refused); done || err != nil {
				break
			}
		}
		if err != nil {
			return err
		}
		if !done {
			p.plan.Refused = append(p.plan.Refused, refused...)
			return nil
		}
	}
}

// takeSome does a step with as many units of work as it can; it returns false if none can be done.
func (p *planner) takeSome(units []Batch, refused *[]Refusal) (bool, error) {
	for n := len(units); len(units) > 0; n = (n + 1) / 2 {
		b := p.join(units[:n])
		if p.opt.AtOnce > 0 && n > 1 && max(len(b.Unplug), len(b.Plug)) > p.opt.AtOnce {
			continue
		}
		reason := "no cable leads there yet"
		if len(b.Unplug)+len(b.Plug) > 0 {
			var err error
			if reason, err = p.take(b); err != nil {
				return false, err
			}
		}
		if reason == "" {
			return true, nil
		}
		if n == 1 {
			*refused = append(*refused, Refusal{p.links(units[0].Unplug), p.links(units[0].Plug), reason})
			units = units[1:]
		}
	}
	return false, nil
}

// join puts units together, and adds new cables whose ports these make free. It drops new cables
// that reach no switch with a cable, not even over other cables of b.
func (p *planner) join(units []Batch) (b Batch) {
	for _, u := range units {
		b.Unplug, b.Plug = append(b.Unplug, without(u.Unplug, b.Unplug)...), append(b.Plug, without(u.Plug, b.Plug)...)
	}
	now := p.now.Routing.Fabric
	left := now.Without(firstEnds(b.Unplug)...)
	for _, c := range without(missing(p.want, now), b.Plug) {
		wasTaken := now.Peer(c.A) != fabric.NoPort || now.Peer(c.B) != fabric.NoPort
		if wasTaken && left.Peer(c.A) == fabric.NoPort && left.Peer(c.B) == fabric.NoPort {
			b.Plug = append(b.Plug, c)
		}
	}
	after, err := p.job.Nodes.WithCables(append(left.Cables(), b.Plug...))
	if err != nil {
		return b // take refuses it
	}
	part := after.Components().Of
	reached := make(map[int32]bool)
	for _, s := range left.Switches() {
		if left.HasCable(s) {
			reached[part[s]] = true
		}
	}
	leads := func(end fabric.PortID) bool { return left.IsSwitch(left.Owner(end)) && reached[part[left.Owner(end)]] }
	b.Plug = slices.DeleteFunc(b.Plug, func(c fabric.Cable) bool { return !leads(c.A) && !leads(c.B) })
	return b
}

// arrivals lists the cables to plug in, each a unit. free has those whose ports
// are free, between switches first; moves has the others, each with the one or
// two cables to unplug from its ports.
func (p *planner) arrivals() (free, moves []Batch) {
	f, now := p.job.Nodes, p.now.Routing.Fabric
	var hosts []Batch
	for _, c := range missing(p.want, now) {
		u := Batch{Plug: []fabric.Cable{c}}
		for _, end := range [...]fabric.PortID{c.A, c.B} {
			if other := now.Peer(end); other != fabric.NoPort && (end == c.A || other != c.A && now.Peer(c.A) != end) {
				u.Unplug = append(u.Unplug, ordered(fabric.Cable{A: end, B: other, Link: now.Link(end)}))
			}
		}
		switch {
		case len(u.Unplug) > 0:
			moves = append(moves, u)
		case f.IsSwitch(f.Owner(c.A)) && f.IsSwitch(f.Owner(c.B)):
			free = append(free, u)
		default:
			hosts = append(hosts, u)
		}
	}
	return append(free, hosts...), p.spread(moves)
}

// spread takes the first unit of each switch, then the second of each, and so on. Units in one step
// then leave each switch as many cables as possible: 144 uplinks of 12 leaves at radix 24 move in 4
// steps so, else in 33.
func (p *planner) spread(units []Batch) []Batch {
	before := make(map[fabric.NodeID]int)
	var rounds [][]Batch
	for _, u := range units {
		n := p.job.Nodes.Owner(u.Unplug[0].A)
		if before[n] == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[before[n]] = append(rounds[before[n]], u)
		before[n]++
	}
	return slices.Concat(rounds...)
}

// removals lists the cables to unplug that no other replaces, as one unit for nodes that are
// removed together.
func (p *planner) removals() (units []Batch) {
	f, want := p.job.Nodes, p.want
	next := make([][]fabric.NodeID, f.NumNodes())
	var cables []fabric.Cable
	for _, c := range missing(p.now.Routing.Fabric, want) {
		if want.Peer(c.A) != fabric.NoPort || want.Peer(c.B) != fabric.NoPort {
			continue
		}
		cables = append(cables, c)
		if x, y := f.Owner(c.A), f.Owner(c.B); !want.HasCable(x) && !want.HasCable(y) {
			next[x], next[y] = append(next[x], y), append(next[y], x)
		}
	}
	of, n := graph.Components(f.NumNodes(), func(n fabric.NodeID) []fabric.NodeID { return next[n] })
	unit := make([]int, n) // by component: number of its unit, from 1; 0 for none
	for _, c := range cables {
		n := f.Owner(c.A)
		if want.HasCable(n) {
			n = f.Owner(c.B)
		}
		switch {
		case want.HasCable(n):
			units = append(units, Batch{Unplug: []fabric.Cable{c}})
		case unit[of[n]] == 0:
			units = append(units, Batch{Unplug: []fabric.Cable{c}})
			unit[of[n]] = len(units)
		default:
			u := &units[unit[of[n]]-1]
			u.Unplug = append(u.Unplug, c)
		}
	}
	return p.spread(units)
}
