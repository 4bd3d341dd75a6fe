package gen

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// TreeSpec describes a tree of two or three levels: leaves
// with the hosts, spines, and core switches if Cores is not 0.
type TreeSpec struct {
	Ports int   // of every switch
	Pods  []int // units of each pod. Pods meet in core switches only
	Hosts int   // of each unit
	// Rails is the number of leaves of a unit: each host of the unit
	// has an adapter on each of them. 0 is 1, a unit of one leaf.
	Rails int
	// RailSpines gives each rail of a pod spines of its own: rails meet in core switches only.
	RailSpines bool
	Spines     int // of each pod, or of each rail of a pod with RailSpines
	Parallel   int // cables between a leaf and each of its spines; 0 for 1
	Groups     int // of core switches, each above equally many spines of each pod; 0 for Spines
	Cores      int // core switches of each group; 0 for a tree of two levels
	// Directors makes a chassis of each group: its core switches are the spine chips, the
	// spines below it the line chips. A tree of two levels is one chassis with hosts on the
	// line chips. The chips of a chassis have one system image GUID, that of its first chip.
	Directors bool
}

// PodSizes returns the number of leaves of each pod, for TreeSpec.Pods; a single number is for all pods.
func PodSizes(pods int, leaves []int) ([]int, error) {
	switch {
	case pods < 1 || pods > int(fabric.MaxUnicastLID):
		return nil, fmt.Errorf("%d pods: want 1 to %d", pods, fabric.MaxUnicastLID)
	case len(leaves) == 1:
		return slices.Repeat(leaves, pods), nil
	case len(leaves) != pods:
		return nil, fmt.Errorf("%d numbers of leaves for %s: want 1, or one for each pod", len(leaves), text.Count(pods, "pod", "pods"))
	}
	return leaves, nil
}

// Director makes the tree of Groups directors with Cores spine chips each, and lines
// line chips for each pod. If lines is 0, the leaves are the line chips of one director.
func Director(spec TreeSpec, lines int) (*fabric.Fabric, error) {
	spec.Directors = true
	switch {
	case lines < 0 || spec.Groups < 1 || spec.Cores < 1:
		return nil, fmt.Errorf("%d directors of %d spine chips and %d line chips for each pod: want 1, 1 and 0 or more", spec.Groups, spec.Cores, lines)
	case lines > 0:
		spec.Spines = lines * spec.Groups
	case spec.Groups != 1 || len(spec.Pods) != 1:
		return nil, fmt.Errorf("%s and %s with hosts on line chips: want 1 of each, since nothing would connect them",
			text.Count(spec.Groups, "director", "directors"), text.Count(len(spec.Pods), "pod", "pods"))
	default:
		spec.Spines, spec.Cores = spec.Cores, 0
	}
	return Tree(spec)
}

// Tree makes a tree. Switches have the ports of the spec, needed or not: a
// director whose pods leave ports of its spine chips free is filled in part.
//
// A leaf has one cable, or Parallel ones, to each spine of its pod, or of
// its rail of the pod; a spine has one to each core switch of its group.
// GUIDs are numbered leaves first, by pod, unit and rail, then the spines by
// pod, the core switches by group, the hosts by pod and unit.
//
// Ports, from 1: a leaf has its hosts on the first, and its spines in order on the
// last, once for each parallel cable; a spine has its leaves in order, parallel
// cables side by side, and its core switches on the ports that follow those for the
// largest pod; a core switch has its spines by pod and rail.
func Tree(spec TreeSpec) (*fabric.Fabric, error) {
	t := &tree{TreeSpec: spec}
	if err := t.prepare(); err != nil {
		return nil, err
	}
	p, err := NewPlan(t.leaves+len(t.blocks)*t.Spines+t.Groups*t.Cores, t.leaves*t.Hosts)
	if err != nil {
		return nil, err
	}
	t.p = p
	t.addLeaves()
	t.addSpines()
	t.addCores()
	t.addHosts()
	if t.Directors {
		t.joinChassis()
	}
	return p.Fabric()
}

// tree is the state of one Tree. Switches are indices of the plan.
type tree struct {
	TreeSpec
	p      *Plan
	leaves int   // of all pods
	each   int   // spines of a block in each group
	leaf   []int // by pod, unit and rail
	blocks []block
	core   []int // by group
}

// block is a part of a pod whose leaves have the same spines: a pod or a rail of it.
type block struct {
	suffix      string // end of the names of its spines
	size        int    // leaves
	leaf, spine []int
}

// prepare completes the spec, and returns an error if it cannot be built.
func (t *tree) prepare() error {
	t.Parallel, t.Rails = max(t.Parallel, 1), max(t.Rails, 1)
	most := int(fabric.MaxUnicastLID)
	numbers := []int{t.Hosts, t.Rails, len(t.Pods) * t.Rails, t.Spines, t.Parallel, t.Groups, t.Cores}
	if n := slices.Max(append(numbers, t.Pods...)); n > most {
		return fmt.Errorf("%d nodes or cables of a kind in a tree: want at most %d: %w", n, most, fabric.ErrTooLarge)
	}
	switch {
	case t.Directors && t.Cores == 0:
		t.Groups = 1
	case t.Groups == 0:
		t.Groups = t.Spines
	}
	switch {
	case t.Ports < 1 || t.Ports > int(fabric.MaxPortNum):
		return fmt.Errorf("switches of %d ports: want 1 to %d", t.Ports, fabric.MaxPortNum)
	case len(t.Pods) == 0 || slices.Min(t.Pods) < 1:
		return fmt.Errorf("pods of %d leaves: want 1 or more of 1 or more", t.Pods)
	case t.Hosts < 0 || t.Spines < 1 || t.Cores < 0 || t.Groups < 1:
		return fmt.Errorf("%d hosts on a leaf, %d spines, %d core switches in each of %d groups: want 0, 1, 0 and 1 or more", t.Hosts, t.Spines, t.Cores, t.Groups)
	case t.Spines%t.Groups != 0:
		return fmt.Errorf("%d spines of a pod below %d groups of core switches: want as many for each group", t.Spines, t.Groups)
	}
	t.each = t.Spines / t.Groups
	for pod, units := range t.Pods {
		t.leaves += units * t.Rails
		if !t.RailSpines {
			t.blocks = append(t.blocks, block{suffix: t.podName(pod), size: units * t.Rails})
			continue
		}
		for r := range t.Rails {
			t.blocks = append(t.blocks, block{suffix: " rail " + strconv.Itoa(r) + t.podName(pod), size: units})
		}
	}
	if t.Cores == 0 && len(t.blocks) > 1 {
		return fmt.Errorf("%d pods or rails with spines of their own, and no core switches between them: want 1", len(t.blocks))
	}
	return t.checkPorts()
}

// checkPorts returns an error if a switch has more cables than ports.
func (t *tree) checkPorts() error {
	for _, level := range []struct {
		name string
		want int
	}{
		{"leaf", t.Hosts + t.Spines*t.Parallel},
		{"spine", t.most()*t.Parallel + t.Cores},
		{"core switch", min(t.Cores, 1) * len(t.blocks) * t.each},
	} {
		if level.want > t.Ports {
			return fmt.Errorf("%d cables on a %s: want at most %d, one for each port", level.want, level.name, t.Ports)
		}
	}
	return nil
}

// most returns the number of leaves of the largest block.
func (t *tree) most() int {
	return slices.MaxFunc(t.blocks, func(a, b block) int { return a.size - b.size }).size
}

// podName returns the pod's part of the name of a switch.
func (t *tree) podName(pod int) string {
	if t.Cores == 0 {
		return ""
	}
	return " pod " + strconv.Itoa(pod)
}

func (t *tree) leafName(pod, unit, rail int) string {
	switch {
	case t.Directors && t.Cores == 0:
		return "line " + strconv.Itoa(unit*t.Rails+rail) + " director 0"
	case t.Rails > 1:
		return "leaf " + strconv.Itoa(rail) + " unit " + strconv.Itoa(unit) + t.podName(pod)
	}
	return "leaf " + strconv.Itoa(unit) + t.podName(pod)
}

// spineName returns the name of spine s of block b, which in a director is a line chip.
func (t *tree) spineName(b, s int) string {
	switch {
	case t.Directors && t.Cores == 0:
		return "spine " + strconv.Itoa(s) + " director 0"
	case t.Directors:
		return "line " + strconv.Itoa(b*t.each+s%t.each) + " director " + strconv.Itoa(s/t.each)
	}
	return "spine " + strconv.Itoa(s) + t.blocks[b].suffix
}

func (t *tree) coreName(g, c int) string {
	if t.Directors {
		return "spine " + strconv.Itoa(c) + " director " + strconv.Itoa(g)
	}
	return "core " + strconv.Itoa(g) + "," + strconv.Itoa(c)
}

func (t *tree) addLeaves() {
	for pod, units := range t.Pods {
		for u := range units {
			for r := range t.Rails {
				i := t.p.Switch(t.Ports, t.leafName(pod, u, r))
				t.leaf = append(t.leaf, i)
				b := &t.blocks[pod]
				if t.RailSpines {
					b = &t.blocks[pod*t.Rails+r]
				}
				b.leaf = append(b.leaf, i)
			}
		}
	}
}

// addSpines adds the spines of all blocks, with their cables down.
func (t *tree) addSpines() {
	for i := range t.blocks {
		b := &t.blocks[i]
		for s := range t.Spines {
			spine := t.p.Switch(t.Ports, t.spineName(i, s))
			b.spine = append(b.spine, spine)
			for l, leaf := range b.leaf {
				for k := range t.Parallel {
					t.p.Cable(leaf, t.Ports-(t.Parallel-k)*t.Spines+1+s, spine, l*t.Parallel+k+1)
				}
			}
		}
	}
}

// addCores adds the core switches of all groups, with their cables down.
func (t *tree) addCores() {
	first := t.most()*t.Parallel + 1 // port of a spine
	for g := range t.Groups {
		for c := range t.Cores {
			core := t.p.Switch(t.Ports, t.coreName(g, c))
			t.core = append(t.core, core)
			for i := range t.blocks {
				for s := range t.each {
					t.p.Cable(t.blocks[i].spine[g*t.each+s], first+c, core, i*t.each+s+1)
				}
			}
		}
	}
}

// addHosts adds the hosts of all units, each with an adapter for each rail.
func (t *tree) addHosts() {
	leaf := 0 // the first of the unit
	for pod, units := range t.Pods {
		for u := range units {
			name := " " + t.leafName(pod, u, 0)
			if t.Rails > 1 {
				name = " unit " + strconv.Itoa(u) + t.podName(pod)
			}
			for h := range t.Hosts {
				host := "host " + strconv.Itoa(h) + name
				for r := range t.Rails {
					adapter := host
					if t.Rails > 1 {
						adapter = "adapter " + strconv.Itoa(r) + " " + host
					}
					t.p.Cable(t.p.CA(1, adapter), 1, t.leaf[leaf+r], h+1)
				}
			}
			leaf += t.Rails
		}
	}
}

// joinChassis gives the chips of each chassis one system image GUID.
func (t *tree) joinChassis() {
	if t.Cores == 0 {
		t.p.System(slices.Concat(t.leaf, t.blocks[0].spine))
		return
	}
	for g := range t.Groups {
		var chips []int
		for i := range t.blocks {
			chips = append(chips, t.blocks[i].spine[g*t.each:(g+1)*t.each]...)
		}
		t.p.System(append(chips, t.core[g*t.Cores:(g+1)*t.Cores]...))
	}
}
