package gen

import (
	"fmt"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
)

// latticePorts is the number of ports of a lattice switch: 1 to 4 lead east,
// north, west and south, 5 to the host, the others are free.
const latticePorts = 8

// point is a place on the integer lattice, x to the east, y to the north.
type point struct{ x, y int32 }

// Lattice makes one of the irregular networks of Libeskind-Hadas, Mazzoni and
// Rajagopalan, Tree-Based Multicasting in Wormhole-Routed Irregular
// Topologies (1998), section 4: 8-port switches on random points of the
// integer lattice, a cable between any two on adjacent points, and one host
// on each switch.
//
// The paper does not say how the points were drawn. Here they grow: each
// point after the first is drawn from all free points next to a
// taken one, all equally likely (the Eden model), so
// that the network is connected. Switches are numbered in random order: the
// one with the lowest GUID, the usual root of a spanning tree, can be
// anywhere. The smallest coordinates are 0.
func Lattice(switches int, seed uint64) (*fabric.Fabric, error) {
	if switches < 1 {
		return nil, fmt.Errorf("lattice network of %d switches: want 1 or more", switches)
	}
	p, err := NewPlan(switches, switches)
	if err != nil {
		return nil, fmt.Errorf("lattice network: %w", err)
	}
	points := grow(switches, seed)
	at := make(map[point]int, switches)
	names := make([]string, switches)
	for i, q := range points {
		names[i] = strconv.Itoa(int(q.x)) + "," + strconv.Itoa(int(q.y))
		at[q] = p.Switch(latticePorts, "switch "+names[i])
	}
	for i, q := range points {
		if east, ok := at[point{q.x + 1, q.y}]; ok {
			p.Cable(i, 1, east, 3)
		}
		if north, ok := at[point{q.x, q.y + 1}]; ok {
			p.Cable(i, 2, north, 4)
		}
	}
	for i, name := range names {
		p.Cable(p.CA(1, "host "+name), 1, i, 5)
	}
	return p.Fabric()
}

// grow draws n connected lattice points, in random order.
func grow(n int, seed uint64) []point {
	rng := newRand(seed)
	seen := map[point]bool{{}: true} // taken, or in border
	border := []point{{}}
	points := make([]point, 0, n)
	for len(points) < n {
		i := rng.IntN(len(border))
		q := border[i]
		border[i] = border[len(border)-1]
		border = border[:len(border)-1]
		points = append(points, q)
		for _, next := range [...]point{{q.x + 1, q.y}, {q.x, q.y + 1}, {q.x - 1, q.y}, {q.x, q.y - 1}} {
			if !seen[next] {
				seen[next] = true
				border = append(border, next)
			}
		}
	}
	var low point
	for _, q := range points {
		low.x, low.y = min(low.x, q.x), min(low.y, q.y)
	}
	for i := range points {
		points[i].x -= low.x
		points[i].y -= low.y
	}
	rng.Shuffle(n, func(i, j int) { points[i], points[j] = points[j], points[i] })
	return points
}
