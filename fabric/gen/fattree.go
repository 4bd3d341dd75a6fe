package gen

import (
	"fmt"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
)

// FatTreeSpec describes a fat tree of switches that all have the same number
// of ports.
type FatTreeSpec struct {
	Radix        int // ports of every switch: even, 2 to 254
	Levels       int // 2 or 3
	HostsPerLeaf int // 1 to Radix-1; 0 for Radix/2
}

// FatTree makes a fat tree, K being the radix and U the number of cables
// that go up from a leaf. U is K/2, or what HostsPerLeaf leaves free where
// that is less: then the tree is oversubscribed.
//
// Two levels are K leaves below U spines, one cable between each two: K*K/2
// hosts when full.
//
// Three levels are K pods and above them U groups of K/2 core switches (Al-
// Fares et al., A Scalable, Commodity Data Center Network Architecture,
// SIGCOMM 2008, section 2.2). A pod is K/2 leaves below U spines, one cable
// between each two; spine g of every pod has one cable to each core switch
// of group g: K*K*K/4 hosts and 5*K*K/4 switches when full.
//
// Ports, from 1: a leaf has its hosts on the first and spine s on port
// K-U+1+s; spine s has leaf l on port l+1 and, with three levels, core g,c
// on port K/2+1+c; a core switch has pod p on port p+1.
func FatTree(spec FatTreeSpec) (*fabric.Fabric, error) {
	radix, hosts := spec.Radix, spec.HostsPerLeaf
	if radix < 2 || radix > int(fabric.MaxPortNum) || radix%2 != 0 {
		return nil, fmt.Errorf("fat tree of radix %d: want an even number from 2 to %d", radix, fabric.MaxPortNum)
	}
	if spec.Levels != 2 && spec.Levels != 3 {
		return nil, fmt.Errorf("fat tree of %d levels: want 2 or 3", spec.Levels)
	}
	half := radix / 2
	if hosts == 0 {
		hosts = half
	}
	if hosts < 1 || hosts >= radix {
		return nil, fmt.Errorf("fat tree of radix %d with %d hosts per leaf: want 1 to %d, so that a port is left to go up", radix, hosts, radix-1)
	}
	up := min(half, radix-hosts)

	pods, leaves, cores := 1, radix, 0
	if spec.Levels == 3 {
		pods, leaves, cores = radix, half, half
	}
	p, err := NewPlan(pods*(leaves+up)+up*cores, pods*leaves*hosts)
	if err != nil {
		return nil, fmt.Errorf("fat tree of radix %d, %d levels and %d hosts per leaf: %w", radix, spec.Levels, hosts, err)
	}
	podNames := []string{""}
	if spec.Levels == 3 {
		podNames = make([]string, pods)
		for pod := range podNames {
			podNames[pod] = " pod " + strconv.Itoa(pod)
		}
	}
	leaf := make([]int, 0, pods*leaves) // by pod, by leaf
	leafNames := make([]string, 0, pods*leaves)
	for _, in := range podNames {
		for l := range leaves {
			name := "leaf " + strconv.Itoa(l) + in
			leafNames = append(leafNames, name)
			leaf = append(leaf, p.Switch(radix, name))
		}
	}
	spine := make([]int, 0, pods*up) // by pod, by spine
	for pod, in := range podNames {
		for s := range up {
			i := p.Switch(radix, "spine "+strconv.Itoa(s)+in)
			for l := range leaves {
				p.Cable(leaf[pod*leaves+l], radix-up+1+s, i, l+1)
			}
			spine = append(spine, i)
		}
	}
	for g := range up {
		group := "core " + strconv.Itoa(g) + ","
		for c := range cores {
			i := p.Switch(radix, group+strconv.Itoa(c))
			for pod := range pods {
				p.Cable(spine[pod*up+g], half+1+c, i, pod+1)
			}
		}
	}
	for l, name := range leafNames {
		for h := range hosts {
			p.Cable(p.CA(1, "host "+strconv.Itoa(h)+" "+name), 1, leaf[l], h+1)
		}
	}
	return p.Fabric()
}
