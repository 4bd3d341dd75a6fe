package cabling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/verify"
)

// The kinds of shapes.
const (
	NoSwitch   = "no-switch"
	OneSwitch  = "single-switch"
	FatTree    = "fat-tree"
	Tree       = "irregular-tree" // levels, without a regular pattern between them
	Mesh       = "mesh"
	Torus      = "torus"
	MixedGrid  = "partly-wrapped-mesh"
	Hypercube  = "hypercube"
	Ring       = "ring"
	Line       = "line"
	Banyan     = "banyan"
	Shufflenet = "shufflenet"
	Irregular  = "irregular"
)

// Shape says what a fabric looks like. Its JSON form is the member shape of the
// document of `ibweave check --wiring --format json`.
type Shape struct {
	Kind string `json:"kind"`
	// Name describes the complete shape.
	Name string `json:"name"`
	// Levels is the number of switches on each level of a tree, leaves first.
	Levels []int `json:"levels,omitempty"`
	// Dims is the number of positions along each dimension of a grid, and Wrap
	// which of them are rings.
	Dims []int  `json:"dims,omitempty"`
	Wrap []bool `json:"wrap,omitempty"`
	// Parallel is how many cables join two neighbours.
	Parallel int `json:"parallel,omitempty"`
	// Cables counts the cables between switches of a complete fabric of the shape; 0 if unknown.
	Cables int `json:"cables"`
	// MissingCables and MissingSwitches count what is missing; cables of a missing switch are not
	// counted. ExtraCables counts cables that do not belong to the shape.
	MissingCables   int `json:"missing_cables"`
	MissingSwitches int `json:"missing_switches"`
	ExtraCables     int `json:"extra_cables"`
	// Missing lists the switches that lack cables, those that lack most first; a fat tree's leaves
	// are left out.
	Missing []Lack `json:"missing"` // never nil
	// Certain means that what is missing or extra is a mistake of the cabling.
	// Otherwise the shape is a guess: it explains too few cables, or some
	// switch lacks half or more of the cables that it should have. Irregular
	// shapes are never certain.
	Certain bool `json:"certain"`
	// Fit is the share of the cables that the shape explains, at most 1; 0 for
	// irregular shapes, which explain none.
	Fit float64 `json:"fit"`
	// LevelFit is the share of the cables between switches that join neighbouring levels of a
	// tree; 0 without levels.
	LevelFit float64 `json:"level_fit,omitempty"`

	misfits  []fabric.Name // names of switches that do not fit
	level    []int32       // by switch: its level, 0 for leaves; nil without levels
	deficits []deficit     // pairs of switches that lack cables
	surplus  []fabric.PortID
	holes    []hole
	// unexplained counts the cables that no block of a tree explains, surplus ones too.
	unexplained int
}

// Lack says how many cables a switch lacks.
type Lack struct {
	verify.SwitchRef
	Cables int `json:"cables"` // that the switch lacks
	Has    int `json:"has"`    // that it has to neighbours of the shape
}

// deficit is a pair of switches that should have n cables more.
type deficit struct {
	a, b   fabric.NodeID
	n      int
	pa, pb []fabric.PortID // ports where they should be, ascending; may be fewer than n
}

// addDeficit notes that k cables between a and b are missing, and guesses their ports.
// leadA[n] and leadB[n] count the switches like a and b that use port n for such a cable:
// ports with high counts are guessed first.
func (s *Shape) addDeficit(f *fabric.Fabric, free []bool, k int, a, b fabric.NodeID, leadA, leadB []int) *deficit {
	s.deficits = append(s.deficits, deficit{a: a, b: b, n: k, pa: likely(f, a, leadA, k, free), pb: likely(f, b, leadB, k, free)})
	return &s.deficits[len(s.deficits)-1]
}

// hole is a position of the shape without a switch.
type hole struct {
	name  string
	ports []fabric.PortID // of its neighbours: those that should lead there
}

// String writes a line for the shape, and lines for what it lacks.
func (s *Shape) String() string {
	var b strings.Builder
	b.WriteString(s.Name)
	if text := s.certainty(); text != "" {
		b.WriteString("\n" + text)
	}
	if s.MissingSwitches > 0 {
		names := text.Each(s.holes, func(h hole) string { return h.name })
		fmt.Fprintf(&b, "\n%s missing: %s", text.Count(s.MissingSwitches, "switch", "switches"), joinFew(names, " ", "and %d more"))
	}
	if s.MissingCables > 0 {
		where := text.Each(s.Missing, func(l Lack) string { return fmt.Sprintf("%d at %s", l.Cables, l.Name) })
		fmt.Fprintf(&b, "\n%d of %s missing: %s", s.MissingCables, countCables(s.Cables), joinFew(where, ", ", "and at %d more switches"))
	}
	if s.ExtraCables > 0 {
		fmt.Fprintf(&b, "\n%s that the shape does not have", countCables(s.ExtraCables))
	}
	return b.String()
}

// joinFew joins words; of more than nine only eight, and format more with the number of others.
func joinFew(words []string, between, more string) string {
	if n := len(words); n > 9 {
		words = append(words[:8:8], fmt.Sprintf(more, n-8))
	}
	return strings.Join(words, between)
}

// Recognize returns the first shape that f fits: a banyan network, a fat tree,
// a grid, a shufflenet; else an irregular one. Some cables may be missing: a
// quarter of a fat tree, what mesh.Detect allows of a grid, an eighth of a
// shufflenet, none of a banyan network.
//
// It takes O(switches x cables) for fat trees and what mesh.Detect takes for grids.
func Recognize(f *fabric.Fabric) *Shape {
	switch f.NumSwitches() {
	case 0:
		return &Shape{Kind: NoSwitch, Name: "no switch", Missing: []Lack{}, Fit: 1, Certain: true}
	case 1:
		return &Shape{Kind: OneSwitch, Name: "single switch", Missing: []Lack{}, Fit: 1, Certain: true}
	}
	var s *Shape
	anyGrid := func(f *fabric.Fabric) *Shape { return recognizeGrid(f, nil) }
	for _, try := range []func(*fabric.Fabric) *Shape{recognizeBanyan, recognizeFatTree, anyGrid, recognizeShufflenet} {
		if s = try(f); s == nil {
			continue
		}
		if s.countDeviations(f); s.Fit >= leastFit {
			return s
		}
	}
	s = describeIrregular(f)
	s.countDeviations(f)
	return s
}

// countDeviations counts the deviations that a recognizer found, and sets Fit and Certain.
func (s *Shape) countDeviations(f *fabric.Fabric) {
	lacks := make([]int, f.NumSwitches())
	s.MissingCables = 0
	for _, d := range s.deficits {
		s.MissingCables += d.n
		lacks[d.a] += d.n
		lacks[d.b] += d.n
	}
	s.MissingSwitches = len(s.holes)
	s.ExtraCables = len(s.surplus)
	s.Missing, s.misfits = []Lack{}, nil
	for _, sw := range f.Switches() {
		if lacks[sw] == 0 {
			continue
		}
		has := len(f.Neighbors(sw)) - text.CountIf(s.surplus, func(p fabric.PortID) bool { return f.Owner(p) == sw || f.Owner(f.Peer(p)) == sw })
		l := Lack{verify.SwitchOf(f, sw), lacks[sw], has}
		if l.Cables >= misfitCables && l.Cables >= l.Has {
			s.misfits = append(s.misfits, l.Name)
		}
		if s.Kind != FatTree || s.level[sw] > 0 {
			s.Missing = append(s.Missing, l)
		}
	}
	slices.SortStableFunc(s.Missing, func(a, b Lack) int { return b.Cables - a.Cables })
	s.setCertainty(f)
}

// switchCables counts cables between different switches.
func switchCables(f *fabric.Fabric) int { return len(f.Channels()) / 2 }

// recognizeBanyan recognizes a banyan network in which nothing is missing; nil for others.
func recognizeBanyan(f *fabric.Fabric) *Shape {
	w, err := banyan.Detect(f)
	if err != nil {
		return nil
	}
	name := fmt.Sprintf("banyan network of %d stages, %d processors", w.Stages, w.Size())
	if w.WrapAround() {
		name += ", wrapped around"
	}
	return &Shape{Kind: Banyan, Name: name, Parallel: 1, Cables: switchCables(f)}
}

// describeIrregular describes a fabric of no other shape: an irregular tree if it has levels.
func describeIrregular(f *fabric.Fabric) *Shape {
	low, high := slices.Min(degrees(f)), slices.Max(degrees(f))
	// A fabric has levels if half of its cables join neighbouring ones, and seven of eight hosts
	// are on leaves.
	if level := levels.Of(f); slices.Max(level) > 0 && levels.Share(f, level) >= 0.5 && above(f, level) <= 1./8 {
		s := &Shape{Kind: Tree, level: level, LevelFit: levels.Share(f, level)}
		s.Levels = levelSizes(level)
		s.Name = fmt.Sprintf("irregular tree of %d levels: %s", len(s.Levels), levelNames(s.Levels))
		return s
	}
	degree := fmt.Sprintf("%d to %d cables", low, high)
	if low == high {
		degree = countCables(low)
	}
	return &Shape{Kind: Irregular, Name: fmt.Sprintf("irregular: %d switches with %s to other switches each", f.NumSwitches(), degree)}
}

// degrees counts by switch the cables to other switches.
func degrees(f *fabric.Fabric) []int {
	return text.Each(f.Switches(), func(s fabric.NodeID) int { return len(f.Neighbors(s)) })
}

// recognizeGrid recognizes meshes, tori and hypercubes of the given dimensions, nil for any, if at
// most an eighth of the cables does not fit.
func recognizeGrid(f *fabric.Fabric, dims []int) *Shape {
	g, err := mesh.Detect(f, mesh.DetectOptions{Dims: dims, LeaveOut: true})
	if err != nil || 8*len(g.Extra) > switchCables(f) {
		return nil
	}
	s := &Shape{Dims: g.Dims, surplus: g.Extra}
	s.Kind, s.Name = gridKind(g.Shape)
	if slices.Contains(g.Wrap, true) {
		s.Wrap = g.Wrap
	}
	var have []int                       // cables between neighbours
	lead := make([][]int, 2*len(g.Dims)) // by direction and port number: switches that use it
	for d := range lead {
		lead[d] = make([]int, int(fabric.MaxPortNum)+1)
	}
	for _, sw := range f.Switches() {
		for d := range lead {
			ports := g.Ports(sw, mesh.Dir(d))
			if len(ports) > 0 {
				have = append(have, len(ports))
			}
			for _, p := range ports {
				lead[d][f.Num(p)]++
			}
		}
	}
	s.Parallel = mode(have)
	free := freePorts(f, s.surplus)
	for at := range g.Positions() {
		if g.At(at) == fabric.NoNode {
			s.holes = append(s.holes, hole{g.Coordinates(at), holePorts(g, at, lead, s.Parallel, free)})
		}
	}
	for _, sw := range f.Switches() {
		for dim := range g.Dims {
			d := mesh.Plus(dim)
			other := g.Neighbor(sw, d)
			if other == fabric.NoNode || other == sw {
				continue
			}
			s.Cables += s.Parallel
			ports := slices.Clone(g.Ports(sw, d))
			if k := s.Parallel - len(ports); k > 0 {
				s.addDeficit(f, free, k, sw, other, lead[d], lead[d.Opposite()])
			} else {
				slices.SortStableFunc(ports, func(x, y fabric.PortID) int { return lead[d][f.Num(y)] - lead[d][f.Num(x)] })
				s.surplus = append(s.surplus, ports[s.Parallel:]...)
			}
		}
	}
	return s
}

// gridKind returns the kind of a grid, and its name in words.
func gridKind(g mesh.Shape) (kind, name string) {
	rings := text.CountIf(g.Wrap, func(ring bool) bool { return ring })
	switch {
	case len(g.Dims) == 1 && rings == 1:
		return Ring, g.String()
	case len(g.Dims) == 1:
		return Line, g.String()
	case slices.Max(g.Dims) == 2:
		return Hypercube, fmt.Sprintf("hypercube of %d dimensions", len(g.Dims))
	case rings == len(g.Dims):
		return Torus, g.String()
	case rings > 0:
		return MixedGrid, g.String()
	}
	return Mesh, g.String()
}

// holePorts returns the ports of neighbours that should lead to a missing switch.
func holePorts(g *mesh.Grid, hole int, lead [][]int, parallel int, free []bool) []fabric.PortID {
	var list []fabric.PortID
	for _, sw := range g.Fabric.Switches() {
		for d := range lead {
			if g.Next(g.Position(sw), mesh.Dir(d)) == hole {
				list = append(list, likely(g.Fabric, sw, lead[d], parallel, free)...)
			}
		}
	}
	return list
}

// freePorts returns by PortID true for ports without a cable, or with a surplus one.
func freePorts(f *fabric.Fabric, surplus []fabric.PortID) []bool {
	free := make([]bool, f.NumPorts())
	for p := range free {
		free[p] = f.Peer(fabric.PortID(p)) == fabric.NoPort
	}
	for _, p := range surplus {
		free[p], free[f.Peer(p)] = true, true
	}
	return free
}

// likely returns the k free ports of a switch whose numbers most switches use
// for the same purpose, ascending; fewer if other numbers are not used so.
// lead counts switches by port number.
func likely(f *fabric.Fabric, sw fabric.NodeID, lead []int, k int, free []bool) []fabric.PortID {
	var list []fabric.PortID
	for num := fabric.PortNum(1); num <= f.Node(sw).NumPorts; num++ {
		if p := f.Port(sw, num); lead[num] > 0 && free[p] {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b fabric.PortID) int { return lead[f.Num(b)] - lead[f.Num(a)] })
	list = list[:min(k, len(list))]
	slices.Sort(list)
	return list
}

// Level returns by switch its level in a tree, 0 for leaves; nil for other shapes. Callers
// must not change it.
func (s *Shape) Level() []int32 { return s.level }
