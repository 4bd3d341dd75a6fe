package gen

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// FatTreeSpec describes a fat tree of switches that all have the same number
// of ports.
type FatTreeSpec struct {
	Radix        int // ports of every switch: even, 2 to 254
	Levels       int // 2 or 3
	HostsPerLeaf int // 1 to Radix-1; 0 for Radix/2
}

// FatTree makes a fat tree, where K is the radix and U the number of cables
// that go up from a leaf. U is K/2, or what HostsPerLeaf leaves free if
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
	if hosts = cmp.Or(hosts, half); hosts < 1 || hosts >= radix {
		return nil, fmt.Errorf("fat tree of radix %d with %d hosts per leaf: want 1 to %d, so that a port is left to go up", radix, hosts, radix-1)
	}
	tree := TreeSpec{Ports: radix, Pods: []int{radix}, Hosts: hosts, Spines: min(half, radix-hosts)}
	if spec.Levels == 3 {
		tree.Pods, tree.Cores = slices.Repeat([]int{half}, radix), half
	}
	f, err := Tree(tree)
	if err != nil {
		return nil, fmt.Errorf("fat tree of radix %d, %d levels and %d hosts per leaf: %w", radix, spec.Levels, hosts, err)
	}
	return f, nil
}
