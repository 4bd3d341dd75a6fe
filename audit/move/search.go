package move

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// search finds the steps of a job. It begins again with the first kind of work after each step, since that
// may have freed ports. Of work of one kind it takes as much together as is safe: all, else
// half of it, and so on.
func (p *planner) search() error {
	for {
		var refused []Refusal
		done := false
		for _, list := range []func() []Batch{p.free, p.moves, p.removals} {
			units := list()
			var err error
			if done, err = p.takeSome(units, &refused); err != nil {
				return err
			}
			if done {
				break
			}
		}
		if !done {
			var err error
			if done, err = p.takeDetour(); err != nil {
				return err
			}
		}
		if !done {
			p.dropDetours()
			p.plan.Refused = append(p.plan.Refused, refused...)
			return nil
		}
	}
}

// detour is a step that moves a cable to a port where it does not stay, and what was before it.
type detour struct {
	step   int
	now    *compile.Result
	cables []fabric.Cable
}

// takeDetour does a step for a cable to come that has two in its way, which cannot be out together, and
// says whether there was one: one of the two is plugged into a free port of the switch that the cable to
// come leads to, or of the one that it led to itself. Then its old port is free for others.
func (p *planner) takeDetour() (bool, error) {
	f := p.job.Nodes
	used, wanted := byPort(p.cables), byPort(p.job.New)
	for _, u := range p.moves() {
		c := u.Plug[0]
		if len(u.Unplug) < 2 || p.tried[endsOf(c)] {
			continue
		}
		p.tried[endsOf(c)] = true
		for _, end := range [...]fabric.PortID{c.A, c.B} {
			old := used[end]
			for _, n := range [...]fabric.NodeID{f.Owner(otherEnd(c, end)), f.Owner(otherEnd(old, end))} {
				to := fabric.NoPort
				for num := f.Node(n).NumPorts; num > 0; num-- {
					if at := f.Port(n, num); f.IsSwitch(n) && f.IsSwitch(f.Owner(end)) && !has(used, at) && !has(wanted, at) {
						to = at
					}
				}
				if to == fabric.NoPort || n == f.Owner(end) {
					continue
				}
				before := detour{len(p.plan.Steps), p.now, p.cables}
				reason, err := p.take(Batch{Unplug: []fabric.Cable{old}, Plug: []fabric.Cable{ordered(fabric.Cable{A: end, B: to, Link: old.Link})}})
				if err != nil || reason == "" {
					p.detours = append(p.detours, before)
					return err == nil, err
				}
			}
		}
	}
	return false, nil
}

// otherEnd is the end of a cable that is not end.
func otherEnd(c fabric.Cable, end fabric.PortID) fabric.PortID {
	if c.A == end {
		return c.B
	}
	return c.A
}

// dropDetours takes the last steps back if they are detours, which have led to nothing then.
func (p *planner) dropDetours() {
	for n := len(p.detours); n > 0 && p.detours[n-1].step == len(p.plan.Steps)-1; n-- {
		d := p.detours[n-1]
		p.plan.Steps, p.now, p.cables, p.detours = p.plan.Steps[:d.step], d.now, d.cables, p.detours[:n-1]
	}
	for _, d := range p.detours {
		p.plan.Steps[d.step].Detour = true
	}
}

// takeSome does a step with as many units as it can, and says whether there was one.
func (p *planner) takeSome(units []Batch, refused *[]Refusal) (bool, error) {
	n := len(units)
	if p.most > 0 {
		n = min(n, p.most)
	}
	first := true
	for len(units) > 0 {
		n = min(n, len(units))
		b := p.join(units[:n])
		if p.opt.AtOnce > 0 && n > 1 && max(len(b.Unplug), len(b.Plug)) > p.opt.AtOnce {
			n = (n + 1) / 2
			continue
		}
		reason := "no cable leads there yet"
		if len(b.Unplug)+len(b.Plug) > 0 {
			var err error
			if reason, err = p.take(b); err != nil {
				return false, err
			}
		}
		switch {
		case reason == "":
			if p.most = n; first {
				p.most = 2 * n
			}
			return true, nil
		case n > 1:
			n, first = n/2, false
		default:
			*refused = append(*refused, Refusal{p.links(units[0].Unplug), p.links(units[0].Plug), reason})
			units = units[1:]
		}
	}
	p.most = 0
	return false, nil
}

// join puts units together, with the cables that can be plugged in when theirs are out.
func (p *planner) join(units []Batch) Batch {
	var b Batch
	for _, u := range units {
		b.Unplug, b.Plug = append(b.Unplug, without(u.Unplug, b.Unplug)...), append(b.Plug, without(u.Plug, b.Plug)...)
	}
	before, left := byPort(p.cables), byPort(without(p.cables, b.Unplug))
	for _, c := range without(without(p.job.New, p.cables), b.Plug) {
		if (has(before, c.A) || has(before, c.B)) && !has(left, c.A) && !has(left, c.B) {
			b.Plug = append(b.Plug, c)
		}
	}
	b.Plug = p.joined(b)
	return b
}

func has(cables map[fabric.PortID]fabric.Cable, p fabric.PortID) bool {
	_, ok := cables[p]
	return ok
}

// joined is the cables to plug in that lead to switches which have cables already, over others of
// them too.
func (p *planner) joined(b Batch) []fabric.Cable {
	f := p.job.Nodes
	next := make([][]fabric.NodeID, f.NumNodes())
	there := make([]bool, f.NumNodes())
	for i, c := range slices.Concat(without(p.cables, b.Unplug), b.Plug) {
		x, y := f.Owner(c.A), f.Owner(c.B)
		old := i < len(p.cables)-len(b.Unplug)
		for _, n := range [...]fabric.NodeID{x, y} {
			there[n] = there[n] || old && f.IsSwitch(n)
		}
		if f.IsSwitch(x) && f.IsSwitch(y) {
			next[x], next[y] = append(next[x], y), append(next[y], x)
		}
	}
	of, n := graph.Components(f.NumNodes(), func(n fabric.NodeID) []fabric.NodeID { return next[n] })
	reached := make([]bool, n)
	for n, is := range there {
		reached[of[n]] = reached[of[n]] || is
	}
	return slices.DeleteFunc(slices.Clone(b.Plug), func(c fabric.Cable) bool { return !reached[of[f.Owner(c.A)]] && !reached[of[f.Owner(c.B)]] })
}

// free lists the cables to come whose ports are free: those between switches first.
func (p *planner) free() (units []Batch) {
	used := byPort(p.cables)
	var hosts []Batch
	for _, c := range without(p.job.New, p.cables) {
		switch f := p.job.Nodes; {
		case has(used, c.A) || has(used, c.B):
		case f.IsSwitch(f.Owner(c.A)) && f.IsSwitch(f.Owner(c.B)):
			units = append(units, Batch{Plug: []fabric.Cable{c}})
		default:
			hosts = append(hosts, Batch{Plug: []fabric.Cable{c}})
		}
	}
	return append(units, hosts...)
}

// moves lists the cables to go that are in the way of one to come, with that: two of them where two cables
// are swapped.
func (p *planner) moves() (units []Batch) {
	at := byPort(without(p.cables, p.job.New))
	for _, c := range without(p.job.New, p.cables) {
		u := Batch{Plug: []fabric.Cable{c}}
		for _, end := range [...]fabric.PortID{c.A, c.B} {
			if old, ok := at[end]; ok && (len(u.Unplug) == 0 || endsOf(u.Unplug[0]) != endsOf(old)) {
				u.Unplug = append(u.Unplug, old)
			}
		}
		if len(u.Unplug) > 0 {
			units = append(units, u)
		}
	}
	return p.spread(units)
}

// spread takes the first unit of each switch first, then the second of each, so that those done together
// leave each switch as many cables as possible.
func (p *planner) spread(units []Batch) []Batch {
	before := make(map[fabric.NodeID]int)
	order := make([]int, len(units)) // of units of the same switch before it
	index := make([]int, len(units))
	for i, u := range units {
		n := p.job.Nodes.Owner(u.Unplug[0].A)
		order[i], index[i] = before[n], i
		before[n]++
	}
	slices.SortStableFunc(index, func(i, k int) int { return cmp.Compare(order[i], order[k]) })
	list := make([]Batch, len(units))
	for i, k := range index {
		list[i] = units[k]
	}
	return list
}

// removals lists the cables to go that nothing takes the place of: those of nodes that go together, with
// all that goes with these.
func (p *planner) removals() (units []Batch) {
	f := p.job.Nodes
	stays, wanted := make([]bool, f.NumNodes()), byPort(without(p.job.New, p.cables))
	for _, c := range p.job.New {
		stays[f.Owner(c.A)], stays[f.Owner(c.B)] = true, true
	}
	next := make([][]fabric.NodeID, f.NumNodes())
	var cables []fabric.Cable
	for _, c := range without(p.cables, p.job.New) {
		if has(wanted, c.A) || has(wanted, c.B) {
			continue
		}
		cables = append(cables, c)
		if x, y := f.Owner(c.A), f.Owner(c.B); !stays[x] && !stays[y] {
			next[x], next[y] = append(next[x], y), append(next[y], x)
		}
	}
	of, n := graph.Components(f.NumNodes(), func(n fabric.NodeID) []fabric.NodeID { return next[n] })
	unit := make([]int, n) // 1 more than its number
	for _, c := range cables {
		n := f.Owner(c.A)
		if stays[n] {
			n = f.Owner(c.B)
		}
		switch {
		case stays[n]:
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
