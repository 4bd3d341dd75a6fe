package reproduce

import (
	"bytes"
	"container/heap"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/report/chart"
)

// Models of the papers' networks that share no code with what they are compared with, not even
// fabrics, routes or random numbers: each confirms a number of a paper within the error of the
// difference.

// confirm compares a point of ours with values of a model's draws.
func confirm(t *testing.T, what string, ours chart.Point, values []float64) {
	t.Helper()
	var model chart.Point
	estimate(&model, values)
	model.Draws = nil // other draws
	d := minus(ours, model)
	t.Logf("%s: ours %s, the model's %s, of %d draws", what, interval(ours, 4), interval(model, 4), len(values))
	if ours.Half == 0 || math.Abs(d.Y) > d.Half {
		t.Errorf("%s: ours is %+.4f +- %.4f off the model", what, d.Y, d.Half)
	}
}

// onLab has an experiment of its own.
func onLab(t *testing.T, do func(lab *Lab) error) {
	t.Helper()
	p := &Paper{ID: "model", Experiments: []Experiment{{Name: "x", Run: func(lab *Lab) (*Figure, error) { return &Figure{}, do(lab) }}}}
	short.Must(Run(t.Context(), []Work{{p, &p.Experiments[0]}}, Options{Quick: true, Seed: 1}))(t)
}

// The model of packets: a switch forwards the head of a packet after some time, each of its inputs
// has room for one packet, and copies leave by themselves. Times are in ps.
type modelNet struct {
	length, routing, wire, credit int64
	next                          func(p *modelPacket, ch int) []modelPacket // what goes on from the end of a channel; none at a host
	arrived                       func(p *modelPacket, at int64)
	channels                      []modelChannel
	events                        modelEvents
	order                         int
	now                           int64
}

type modelPacket struct {
	source, out int // the channel that it wants
	to          []int
	copies      *int // of it in one input buffer that have not left
	in          int  // that channel, or -1 at its source
}

type modelChannel struct {
	end     bool // leads to a host
	busy    bool
	full    bool // the buffer at its end
	waiting []modelPacket
	last    int // the input that went last
}

type modelEvent struct {
	at      int64
	order   int
	channel int
	kind    int // 0: the channel is free, 1: its buffer is, 2: a head has been routed, 3: a packet has come
	p       modelPacket
}

type modelEvents []modelEvent

func (e modelEvents) Len() int { return len(e) }
func (e modelEvents) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e modelEvents) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *modelEvents) Push(x any)   { *e = append(*e, x.(modelEvent)) }
func (e *modelEvents) Pop() any {
	x := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return x
}

func (n *modelNet) push(after int64, channel, kind int, p modelPacket) {
	n.order++
	heap.Push(&n.events, modelEvent{n.now + after, n.order, channel, kind, p})
}

// send queues a packet of a host for its channel.
func (n *modelNet) send(p modelPacket) {
	one := 1
	p.copies, p.in = &one, -1
	c := &n.channels[p.out]
	c.waiting = append(c.waiting, p)
	n.try(p.out)
}

// try begins to send what waits for a channel: of several inputs the next one in turn.
func (n *modelNet) try(ch int) {
	c := &n.channels[ch]
	if c.busy || c.full || len(c.waiting) == 0 {
		return
	}
	best := 0
	turn := func(p *modelPacket) int {
		if p.in <= c.last {
			return p.in + len(n.channels) + 1
		}
		return p.in
	}
	for i := range c.waiting {
		if turn(&c.waiting[i]) < turn(&c.waiting[best]) {
			best = i
		}
	}
	p := c.waiting[best]
	c.waiting = slices.Delete(c.waiting, best, best+1)
	c.last, c.busy, c.full = p.in, true, !c.end
	n.push(n.length, ch, 0, p)
	if *p.copies--; *p.copies == 0 && p.in >= 0 {
		n.push(n.length+n.credit, p.in, 1, p)
	}
	if c.end {
		n.push(n.wire+n.length, ch, 3, p)
	} else {
		n.push(n.wire+n.routing, ch, 2, p)
	}
}

// run goes on to the end.
func (n *modelNet) run() {
	for len(n.events) > 0 {
		e := heap.Pop(&n.events).(modelEvent)
		n.now = e.at
		switch e.kind {
		case 0:
			n.channels[e.channel].busy = false
			n.try(e.channel)
		case 1:
			n.channels[e.channel].full = false
			n.try(e.channel)
		case 2:
			copies := n.next(&e.p, e.channel)
			left := len(copies)
			for _, p := range copies {
				p.copies, p.in = &left, e.channel
				n.channels[p.out].waiting = append(n.channels[p.out].waiting, p)
			}
			for _, p := range copies {
				n.try(p.out)
			}
		case 3:
			n.arrived(&e.p, n.now)
		}
	}
}

// modelMesh is the time in µs until all of 40 % of the hosts of a 16x16 mesh have what 40 % of
// them send. Channel 6*s+k leaves switch s east, north, west, south, to its host, and for k = 5
// comes from its host.
func modelMesh(rng *rand.Rand, bytes int, unicast bool) float64 {
	const side, hosts = 16, 102
	var last int64
	n := &modelNet{length: int64(bytes) * 4000, routing: 100_000, wire: 10_000, credit: 10_000, channels: make([]modelChannel, 6*side*side)}
	for s := range side * side {
		n.channels[6*s+4].end = true
	}
	step := func(s, to int) int {
		switch {
		case to/side > s/side:
			return 0
		case to/side < s/side:
			return 2
		case to > s:
			return 1
		case to < s:
			return 3
		}
		return 4
	}
	n.arrived = func(_ *modelPacket, at int64) { last = max(last, at) }
	n.next = func(p *modelPacket, ch int) (list []modelPacket) {
		s := ch / 6
		switch ch % 6 {
		case 0:
			s += side
		case 1:
			s++
		case 2:
			s -= side
		case 3:
			s--
		}
		for k := range 5 {
			var to []int
			for _, d := range p.to {
				if step(s, d) == k {
					to = append(to, d)
				}
			}
			if to != nil {
				list = append(list, modelPacket{source: p.source, out: 6*s + k, to: to})
			}
		}
		return list
	}
	group := rng.Perm(side * side)[:hosts]
	slices.Sort(group)
	for _, source := range rng.Perm(side * side)[:hosts] {
		to := slices.DeleteFunc(slices.Clone(group), func(d int) bool { return d == source })
		if !unicast {
			n.send(modelPacket{source: source, out: 6*source + 5, to: to})
			continue
		}
		for _, d := range to {
			n.send(modelPacket{source: source, out: 6*source + 5, to: []int{d}})
		}
	}
	n.run()
	return float64(last) / 1e6
}

// TestModelMesh confirms times of the mesh papers: of multicast for the journal version, of
// repeated unicast for the conference's.
func TestModelMesh(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 1))
	for _, unicast := range []bool{false, true} {
		if unicast && testing.Short() {
			continue
		}
		var ours chart.Point
		onLab(t, func(lab *Lab) error {
			return measureMesh(lab, []meshPoint{{newExchange(meshPart, meshPart, 32, unicast, oneVL, 1, 0), &ours}}, 5)
		})
		var values []float64
		for range short.Of(8, 4) {
			values = append(values, modelMesh(rng, 32, unicast))
		}
		confirm(t, curveOf(unicast, oneVL)+", 102 sources to 102, 32 bytes, µs", ours, values)
	}
}

// TestModelLattice confirms the time of a broadcast in 256 nodes: up to the root and down to the
// deepest switch of networks that grow at random.
func TestModelLattice(t *testing.T) {
	const n = 256
	type place struct{ x, y int }
	var values []float64
	for draw := range short.Of[uint64](200, 50) {
		rng := rand.New(rand.NewPCG(73, draw))
		taken := map[place]bool{{}: true}
		list := []place{{}}
		around := func(p place) [4]place {
			return [4]place{{p.x + 1, p.y}, {p.x - 1, p.y}, {p.x, p.y + 1}, {p.x, p.y - 1}}
		}
		for len(list) < n {
			var free []place
			for _, p := range list {
				for _, q := range around(p) {
					if !taken[q] && !slices.Contains(free, q) {
						free = append(free, q)
					}
				}
			}
			q := free[rng.IntN(len(free))]
			taken[q] = true
			list = append(list, q)
		}
		root, source := list[rng.IntN(n)], list[rng.IntN(n)]
		level := map[place]int{root: 0}
		deepest := 0
		for queue := []place{root}; len(queue) > 0; queue = queue[1:] {
			for _, q := range around(queue[0]) {
				if _, ok := level[q]; taken[q] && !ok {
					level[q] = level[queue[0]] + 1
					deepest = max(deepest, level[q])
					queue = append(queue, q)
				}
			}
		}
		routers := level[source] + 1 + deepest
		values = append(values, 10+0.04*float64(routers)+0.01*float64(routers+1)+1.27)
	}
	var ours chart.Point
	onLab(t, func(lab *Lab) error {
		p := spamPoint{tree: spamTrees[0], switches: n, d: n - 1, way: (*spamRouters).alone, to: &ours}
		return lab.Each(1, func(ctx context.Context, _ int) error { return p.measure(ctx, lab.Seed, true) })
	})
	confirm(t, "broadcast in 256 nodes, µs", ours, values)
}

// TestModelSlots confirms how many packets of f = 16 come to all their destinations.
func TestModelSlots(t *testing.T) {
	const n, nodes, f = 7, 128, 16
	type packet struct{ source, low, high int }
	var values []float64
	for block := range uint64(20) {
		rng := rand.New(rand.NewPCG(74, block))
		whole := 0
		const slots = 250
		for range slots {
			on := map[int]packet{} // by link
			for a := range nodes {
				if rng.Float64() < 1.0/f {
					s := rng.IntN(nodes - f + 1)
					on[(a*2)%nodes+a/(nodes/2)] = packet{a, s, s + f - 1}
				}
			}
			for stage := n - 1; stage >= 0; stage-- {
				want := map[int][]packet{} // by output link
				for link, p := range on {
					base := link &^ 1
					if middle := p.high >> stage << stage; p.low>>stage != p.high>>stage { // it is split
						want[base] = append(want[base], packet{p.source, p.low, middle - 1})
						want[base|1] = append(want[base|1], packet{p.source, middle, p.high})
					} else {
						out := base | p.low>>stage&1
						want[out] = append(want[out], p)
					}
				}
				clear(on)
				links := make([]int, 0, len(want))
				for link := range want {
					links = append(links, link)
				}
				slices.Sort(links) // maps have no order, and random numbers do
				for _, link := range links {
					list := want[link]
					slices.SortFunc(list, func(a, b packet) int { return a.source - b.source })
					next := link
					if stage > 0 && link>>stage&1 != link&1 {
						next = link ^ 1 ^ 1<<stage
					}
					on[next] = list[rng.IntN(len(list))]
				}
			}
			copies := map[int]int{}
			for _, p := range on {
				if copies[p.source]++; copies[p.source] == f {
					whole++
				}
			}
		}
		values = append(values, float64(whole)/slots/nodes)
	}
	work := short.Must(Find([]string{"min/whole"}))(t)
	figures := short.Must(Run(t.Context(), work, Options{Quick: true, Seed: 1}))(t)
	confirm(t, "all 16 copies arrive, packets per node and slot", figures[0].panel(len(minParts)-1).At(minArrived, f), values)
}

// TestModelTorus confirms the latency of the circuit at a load at which hardly anything waits:
// nine hosts in a row store and forward, each hop over as many links as up/down takes.
func TestModelTorus(t *testing.T) {
	const side, load, bytes = 8, 0.01, 400
	// Levels and numbers from switch 0 order the switches; paths go down that order, then up.
	neighbours := func(s int) [4]int {
		x, y := s/side, s%side
		return [4]int{(x+1)%side*side + y, (x+side-1)%side*side + y, x*side + (y+1)%side, x*side + (y+side-1)%side}
	}
	level := func(s int) int { x, y := s/side, s%side; return min(x, side-x) + min(y, side-y) }
	up := func(a, b int) bool { return level(b) < level(a) || level(b) == level(a) && b < a }
	links, pairs := 0, 0
	for from := range side * side {
		type state struct {
			at   int
			down bool
		}
		far := map[state]int{{from, false}: 0}
		best := map[int]int{from: 0}
		for queue := []state{{from, false}}; len(queue) > 0; queue = queue[1:] {
			for _, to := range neighbours(queue[0].at) {
				next := state{to, !up(queue[0].at, to)}
				if _, ok := far[next]; ok || queue[0].down && !next.down {
					continue
				}
				far[next] = far[queue[0]] + 1
				if d, ok := best[to]; !ok || far[next] < d {
					best[to] = far[next]
				}
				queue = append(queue, next)
			}
		}
		for to, d := range best {
			if to != from {
				links += d
				pairs++
			}
		}
	}
	mean := float64(links) / float64(pairs)
	// A cable is 5 byte times, a switch 8. At a server of load rho a worm of geometric length waits
	// rho times its mean, by Pollaczek and Khinchine: at the host, at the links of its path, which
	// have mean*pairs of all, and at the last cable.
	channels := float64(4 * side * side)
	each := load * mean * side * side / channels
	hop := bytes + 5*(mean+2) + 8*(mean+1) + bytes*(load+mean*each+load)
	values := []float64{9 * hop * byteTime}
	var ours chart.Point
	onLab(t, func(lab *Lab) error {
		f, err := callModel(lab, fmt.Sprintf("lan --scheme circuit --measure latency --load %v", load))
		if err == nil {
			ours = f.At(circuitSF.name, load)
		}
		return err
	})
	if math.Abs(mean-4.57) > 0.01 {
		t.Errorf("paths have %.3f links on the mean, want 4.57", mean)
	}
	confirm(t, "circuit at load 0.01, µs", ours, values)
}

// TestCalls has the figures that are made by models equal to what the calls that they print give:
// panels one after another, or rows among those of an exhibit.
func TestCalls(t *testing.T) {
	made := maps.Clone(short.Must(madeExhibits())(t))
	for _, id := range []string{"min/fig5", "min/whole", "gerla1996/cut-trees", "gerla1996/latency"}[:short.Of(short.Usual(4, 2), 1)] {
		work := short.Must(Find([]string{id}))(t)
		made[id] = short.Must(Run(t.Context(), work, Options{Quick: true, Seed: 1}))(t)[0]
	}
	calls := 0
	for id, f := range made {
		panels := 0
		for _, line := range f.Calls {
			calls++
			line, ok := strings.CutPrefix(line, "ibweave-papers model ")
			if !ok {
				t.Fatal(line)
			}
			if strings.Contains(line, "'") { // a shell's word
				continue
			}
			var one *Figure
			onLab(t, func(lab *Lab) (err error) {
				one, err = callModel(lab, line)
				return err
			})
			for _, r := range one.Rows {
				if !slices.ContainsFunc(f.Rows, func(x Row) bool { return strings.HasSuffix(x.What, r.What) && x.Computed == r.Computed }) {
					t.Errorf("%s: no row %q, %s, of %s", id, r.What, r.Computed, line)
				}
			}
			if f.Panels == nil {
				continue
			}
			for i := range one.Panels {
				one.Panels[i].Title = f.Panels[panels+i].Title
			}
			whole := *f
			whole.Panels = f.Panels[panels : panels+len(one.Panels)]
			panels += len(one.Panels)
			var a, b bytes.Buffer
			if one.endCurves(); whole.CSV(&a) != nil || one.CSV(&b) != nil || a.String() != b.String() {
				t.Errorf("%s: %s gives\n%s\nwant\n%s", id, line, &b, &a)
			}
		}
		short.Equal(t, panels, len(f.Panels), id, "calls give", "panels")
	}
	if calls < 8 {
		t.Errorf("%d calls", calls)
	}
	// Links out of stages but the last one: golden G-N3 has 22 of them, 7 in phase 1 and three for
	// each of five sends. A cube of the eight nodes 1xxx has 1+2+4 in phase 1, of x10x 2+2+2. Two
	// blocks, the region 010x and two sends, have three each.
	for line, want := range map[string]string{
		"multicast --start 4":                          "22",
		"multicast --header cube --start 8":            "22",
		"multicast --header cube --to 4,5,12,13":       "6",
		"multicast --to 2,3,9 --start 4 --blocks":      "9",
		"multicast --to 4,5,6,7,8 --header region":     "7",
		"multicast --stages 3 --source 0 --to 0,1,2,3": "3",
	} {
		onLab(t, func(lab *Lab) error {
			f, err := callModel(lab, line)
			if err == nil && f.Rows[len(f.Rows)-1].Computed != want {
				t.Errorf("%s: %+v, want %s links", line, f.Rows, want)
			}
			return err
		})
	}
	for line, want := range map[string]string{
		"min --x m":                         "want load, stages or fanout",
		"min --count all":                   "want parts, whole or final",
		"min --start first":                 "want one of",
		"copy-rates --fanout 1000":          "fanout 1000",
		"worms":                             "want --worm, --threes or --random",
		"worms --worm 1-2":                  "want SOURCE:FIRST-LAST",
		"worms --take both --threes":        "want one of",
		"worms --lower-first 1 --threes":    "want STAGE:ELEMENT",
		"worms --random 17":                 "want 1 to the 16 processors",
		"multicast --header list":           "want region or cube",
		"multicast --to 99":                 "want 0 to 15",
		"multicast --header cube --start 3": "a multiple of their number",
		"lan --network ring":                "want torus, mesh, shufflenet or myrinet4",
		"lan --scheme cicuit":               "want circuit, tree",
		"lan --measure delay":               "want latency, carried",
		"lan --measure links,latency":       "want links last",
		"lan --routes dor":                  "want up-down, tree or xy",
		"lan --ids lid":                     "want random or place",
		"lan --members 99":                  "the 64 hosts",
		"testbed --senders 9":               "1 to the 8 hosts",
		"testbed --measure rate":            "want received, lost or in-all",
		"switches --scheme wait":            "want idle, idle-tree, interrupt or flush",
		"switches --members 16":             "all hosts but the root's",
		"tree-header --tree 1(2":            "is not closed",
		"tree-header --tree x":              "ports from 0 to 254",
		"tree-header --header 01":           "no pointer",
	} {
		onLab(t, func(lab *Lab) error {
			if _, err := callModel(lab, line); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", line, err, want)
			}
			return nil
		})
	}
}
