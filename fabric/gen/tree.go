package gen

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
)

// TreeSpec describes a tree of two or three levels: leaves with the hosts, spines, and
// core switches where Cores is not 0.
type TreeSpec struct {
	Ports    int   // of every switch
	Pods     []int // by pod: its leaves, or its units with Rails. Pods meet in core switches only
	Hosts    int   // on each leaf
	Spines   int   // of each pod
	Parallel int   // cables between a leaf and each spine of its pod; 0 for 1
	Groups   int   // of core switches, each of which is above as many spines of each pod; 0 for Spines
	Cores    int   // core switches of each group; 0 for a tree of two levels
	// Directors makes a chassis of each group: its core switches are the spine chips, the
	// spines below it the line chips. A tree of two levels is one chassis with hosts on the
	// line chips. The chips of a chassis have one system image GUID, that of its first chip.
	Directors bool
}

// Tree makes a tree. Spines and core switches come with the ports that the spec has and
// need: a director whose pods leave ports of its spine chips free is filled in part.
//
// A leaf has one cable, or Parallel ones, to each spine of its pod; a spine has one to each
// core switch of its group, which is as many spines of each pod as there are spines for a
// group. GUIDs are numbered leaves first, by pod, then the spines by pod, the core switches
// by group, the hosts by leaf.
//
// Ports, from 1: a leaf has its hosts on the first, and its spines in order on the last,
// once for each parallel cable; a spine has its leaves in order, parallel cables side by
// side, and its core switches behind the leaves of the largest pod; a core switch has its
// spines by pod.
func Tree(spec TreeSpec) (*fabric.Fabric, error) {
	t := &tree{TreeSpec: spec}
	if err := t.prepare(); err != nil {
		return nil, err
	}
	p, err := NewPlan(t.leaves+len(t.Pods)*t.Spines+t.Groups*t.Cores, t.leaves*t.Hosts)
	if err != nil {
		return nil, err
	}
	t.p = p
	for pod, leaves := range t.Pods {
		for l := range leaves {
			t.leaf = append(t.leaf, p.Switch(t.Ports, t.leafName(pod, l)))
		}
	}
	t.addSpines()
	t.addCores()
	t.addHosts()
	if t.Directors {
		t.joinChassis()
	}
	return p.Fabric()
}

// tree is the state of one Tree.
type tree struct {
	TreeSpec
	p           *Plan
	leaves      int   // of all pods
	most        int   // leaves of the largest pod
	leaf, spine []int // by pod: switches of the plan
	core        []int // by group
}

// prepare completes the spec and says what cannot be.
func (t *tree) prepare() error {
	t.Parallel = max(t.Parallel, 1)
	if t.Groups == 0 {
		t.Groups = t.Spines
	}
	if t.Directors && t.Cores == 0 {
		t.Groups = 1
	}
	for _, n := range t.Pods {
		t.leaves += n
		t.most = max(t.most, n)
		if n < 1 {
			return fmt.Errorf("a pod of %d leaves: want 1 or more", n)
		}
	}
	switch {
	case t.Ports < 1 || t.Ports > int(fabric.MaxPortNum):
		return fmt.Errorf("switches of %d ports: want 1 to %d", t.Ports, fabric.MaxPortNum)
	case len(t.Pods) == 0:
		return errors.New("a tree without leaves: want 1 or more")
	case t.Hosts < 0 || t.Spines < 1 || t.Cores < 0 || t.Groups < 1:
		return fmt.Errorf("%d hosts on a leaf, %d spines, %d core switches in each of %d groups: want 0, 1, 0 and 1 or more", t.Hosts, t.Spines, t.Cores, t.Groups)
	case t.Cores == 0 && len(t.Pods) > 1:
		return fmt.Errorf("%d pods without core switches between them: want 1 pod", len(t.Pods))
	case t.Spines%t.Groups != 0:
		return fmt.Errorf("%d spines of a pod below %d groups of core switches: want as many for each group", t.Spines, t.Groups)
	}
	for _, level := range []struct {
		name string
		want int
	}{
		{"leaf", t.Hosts + t.Spines*t.Parallel}, {"spine", t.most*t.Parallel + t.Cores}, {"core switch", min(t.Cores, 1) * len(t.Pods) * t.Spines / t.Groups},
	} {
		if level.want > t.Ports {
			return fmt.Errorf("%d cables on a %s: want at most %d, one for each port", level.want, level.name, t.Ports)
		}
	}
	return nil
}

// podName is what follows the name of a switch of a pod.
func (t *tree) podName(pod int) string {
	if t.Cores == 0 {
		return ""
	}
	return " pod " + strconv.Itoa(pod)
}

func (t *tree) leafName(pod, l int) string {
	if t.Directors && t.Cores == 0 {
		return "line " + strconv.Itoa(l) + " director 0"
	}
	return "leaf " + strconv.Itoa(l) + t.podName(pod)
}

// spineName is the name of the s-th spine of a pod, which in a director is a line chip.
func (t *tree) spineName(pod, s int) string {
	each := t.Spines / t.Groups
	switch {
	case t.Directors && t.Cores == 0:
		return "spine " + strconv.Itoa(s) + " director 0"
	case t.Directors:
		return "line " + strconv.Itoa(pod*each+s%each) + " director " + strconv.Itoa(s/each)
	}
	return "spine " + strconv.Itoa(s) + t.podName(pod)
}

func (t *tree) coreName(g, c int) string {
	if t.Directors {
		return "spine " + strconv.Itoa(c) + " director " + strconv.Itoa(g)
	}
	return "core " + strconv.Itoa(g) + "," + strconv.Itoa(c)
}

// addSpines adds the spines of all pods, with their cables down.
func (t *tree) addSpines() {
	first := 0 // leaf of the pod
	for pod, leaves := range t.Pods {
		for s := range t.Spines {
			i := t.p.Switch(t.Ports, t.spineName(pod, s))
			t.spine = append(t.spine, i)
			for l, leaf := range t.leaf[first : first+leaves] {
				for k := range t.Parallel {
					t.p.Cable(leaf, t.Ports-(t.Parallel-k)*t.Spines+1+s, i, l*t.Parallel+k+1)
				}
			}
		}
		first += leaves
	}
}

// addCores adds the core switches of all groups, with their cables down.
func (t *tree) addCores() {
	each := t.Spines / t.Groups
	for g := range t.Groups {
		for c := range t.Cores {
			i := t.p.Switch(t.Ports, t.coreName(g, c))
			t.core = append(t.core, i)
			for pod := range t.Pods {
				for s := range each {
					t.p.Cable(t.spine[pod*t.Spines+g*each+s], t.most*t.Parallel+1+c, i, pod*each+s+1)
				}
			}
		}
	}
}

// addHosts adds the hosts of all leaves.
func (t *tree) addHosts() {
	i := 0
	for pod, leaves := range t.Pods {
		for l := range leaves {
			name := " " + t.leafName(pod, l)
			for h := range t.Hosts {
				t.p.Cable(t.p.CA(1, "host "+strconv.Itoa(h)+name), 1, t.leaf[i], h+1)
			}
			i++
		}
	}
}

// joinChassis gives the chips of each chassis one system image GUID.
func (t *tree) joinChassis() {
	if t.Cores == 0 {
		t.p.System(slices.Concat(t.leaf, t.spine))
		return
	}
	each := t.Spines / t.Groups
	for g := range t.Groups {
		var chips []int
		for pod := range t.Pods {
			first := pod*t.Spines + g*each
			chips = append(chips, t.spine[first:first+each]...)
		}
		t.p.System(append(chips, t.core[g*t.Cores:(g+1)*t.Cores]...))
	}
}
