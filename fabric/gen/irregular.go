package gen

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
)

// IrregularSpec describes a random network.
type IrregularSpec struct {
	Switches int
	Degree   int    // cables to other switches that every switch has
	Hosts    int    // in the whole fabric
	Seed     uint64 // of the random choices
}

// swapsPerCable is the number of double edge swaps tried for each cable.
const swapsPerCable = 10

// Irregular makes a connected random network in which every switch has
// exactly Degree cables to other switches, no two of them to the same one.
// Hosts are spread evenly: Hosts/Switches a switch, and one more on each of
// the first Hosts%Switches switches.
//
// It starts from a ring through all switches in random order, adds cables to
// those 2, 3, ... places further along it (with an odd degree also to the
// opposite place), and then exchanges the ends of random pairs of cables,
// where this makes no double cable (Milo et al., On the uniform generation of
// random graphs with prescribed degree sequences, 2003). The ring stays, so
// that the network is always connected and degree 2 is a ring. It takes
// O(Switches x Degree x Degree).
//
// Ports, from 1: the other switches in the order of their numbers, then the
// hosts. All switches have the same number of ports. Switches*Degree must be
// even, Degree less than Switches, and not less than 2 when there are more
// than two switches.
func Irregular(spec IrregularSpec) (*fabric.Fabric, error) {
	n, degree, hosts := spec.Switches, spec.Degree, spec.Hosts
	if n < 1 {
		return nil, fmt.Errorf("irregular network of %d switches: want 1 or more", n)
	}
	if degree < min(n-1, 2) || degree > n-1 {
		return nil, fmt.Errorf("irregular network of %d switches, %d cables on each: want %d to %d for a connected one without double cables",
			n, degree, min(n-1, 2), n-1)
	}
	if degree%2 != 0 && n%2 != 0 {
		return nil, fmt.Errorf("irregular network of %d switches, %d cables on each: want one of the numbers even, since a cable has two ends", n, degree)
	}
	if hosts < 0 {
		return nil, fmt.Errorf("irregular network of %d hosts: want 0 or more", hosts)
	}
	p, err := NewPlan(n, hosts)
	if err != nil {
		return nil, fmt.Errorf("irregular network: %w", err)
	}
	perSwitch := (hosts + n - 1) / n
	for s := range n {
		p.Switch(max(degree+perSwitch, 1), "switch "+strconv.Itoa(s))
	}
	peers := regular(n, degree, spec.Seed)
	used := make([]int, n) // by switch: ports with a cable
	for s := range n {
		for _, t := range peers[s*degree : (s+1)*degree] {
			if int(t) > s {
				used[s]++
				used[t]++
				p.Cable(s, used[s], int(t), used[t])
			}
		}
	}
	for s := range n {
		here := hosts / n
		if s < hosts%n {
			here++
		}
		for h := range here {
			name := "host " + strconv.Itoa(s)
			if hosts > n {
				name += "/" + strconv.Itoa(h)
			}
			p.Cable(p.CA(1, name), 1, s, degree+1+h)
		}
	}
	return p.Fabric()
}

// regular makes a connected simple graph of n vertices of the given degree:
// the neighbours of vertex v, in order, are at v*degree.
func regular(n, degree int, seed uint64) []int32 {
	peers := make([]int32, n*degree)
	if n == 1 {
		return peers
	}
	rng := newRand(seed)
	ring := rng.Perm(n)
	used := make([]int, n)
	join := func(a, b int) {
		peers[a*degree+used[a]], peers[b*degree+used[b]] = int32(b), int32(a)
		used[a]++
		used[b]++
	}
	var free [][2]int32 // edges that are not on the ring
	for step := 1; step <= (degree+1)/2; step++ {
		count, jump := n, step
		if 2*step > degree { // the last neighbour of an odd degree
			count, jump = n/2, n/2
		}
		for i := range count {
			a, b := ring[i], ring[(i+jump)%n]
			join(a, b)
			if step > 1 {
				free = append(free, [2]int32{int32(a), int32(b)})
			}
		}
	}
	of := func(v int32) []int32 { return peers[int(v)*degree : (int(v)+1)*degree] }
	replace := func(v, from, to int32) {
		at := of(v)
		at[slices.Index(at, from)] = to
	}
	for range swapsPerCable * len(free) {
		i, j := rng.IntN(len(free)), rng.IntN(len(free))
		a, b := free[i][0], free[i][1]
		c, d := free[j][0], free[j][1]
		if rng.Uint64()&1 != 0 {
			c, d = d, c
		}
		if a == d || b == c || slices.Contains(of(a), d) || slices.Contains(of(c), b) {
			continue
		}
		replace(a, b, d)
		replace(d, c, a)
		replace(c, d, b)
		replace(b, a, c)
		free[i], free[j] = [2]int32{a, d}, [2]int32{c, b}
	}
	for v := range n {
		slices.Sort(of(int32(v)))
	}
	return peers
}
