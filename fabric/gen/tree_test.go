package gen_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
)

// systems lists the descriptions of switches by system image GUID, in the order of the
// first ones.
func systems(f *fabric.Fabric) [][]string {
	var list [][]string
	at := map[fabric.GUID]int{}
	for s := range fabric.NodeID(f.NumSwitches()) {
		x := f.Node(s)
		i, ok := at[x.SystemGUID]
		if !ok {
			i = len(list)
			at[x.SystemGUID] = i
			list = append(list, nil)
			if x.GUID != x.SystemGUID {
				list[i] = append(list[i], "not its own")
			}
		}
		list[i] = append(list[i], x.Description)
	}
	return list
}

// The chips of a director are one system each, and leaves are systems of their own.
func TestDirectors(t *testing.T) {
	for _, tt := range []struct {
		spec gen.TreeSpec
		want string
	}{
		{gen.TreeSpec{Ports: 8, Pods: []int{1, 1}, Spines: 4, Groups: 2, Cores: 1, Directors: true},
			"leaf 0 pod 0|leaf 0 pod 1|" +
				"line 0 director 0,line 1 director 0,line 2 director 0,line 3 director 0,spine 0 director 0|" +
				"line 0 director 1,line 1 director 1,line 2 director 1,line 3 director 1,spine 0 director 1"},
		{gen.TreeSpec{Ports: 8, Pods: []int{3}, Hosts: 2, Spines: 2, Directors: true},
			"line 0 director 0,line 1 director 0,line 2 director 0,spine 0 director 0,spine 1 director 0"},
	} {
		f := short.Must(gen.Tree(tt.spec))(t)
		var got []string
		for _, s := range systems(f) {
			got = append(got, strings.Join(s, ","))
		}
		short.Diff(t, got, strings.Split(tt.want, "|"), tt.spec, "systems")
	}
	// An aggregation node belongs to the chassis of its chip.
	f := short.Must(gen.Tree(gen.TreeSpec{Ports: 8, Pods: []int{3}, Hosts: 2, Spines: 2, Directors: true}))(t)
	f = short.Must((gen.Options{AggregationNodes: true}).Apply(f))(t)
	if got := systems(f); len(got) != 1 || len(got[0]) != 5 {
		t.Errorf("systems %v, want one of 5 chips", got)
	}
	for n := fabric.NodeID(f.NumSwitches()); int(n) < f.NumNodes(); n++ {
		if x := f.Node(n); (x.SystemGUID == f.Node(0).GUID) != (x.Description == gen.AggregationNode) {
			t.Errorf("%+v, the chassis is %s", x, f.Node(0).GUID)
		}
	}
}

// Adapter r of a host is on leaf r of its unit, at the host's number; with spines of their
// own, leaves of a rail of a pod have the same spines and share them with no other.
func TestRails(t *testing.T) {
	for _, own := range []bool{false, true} {
		spec := gen.TreeSpec{Ports: 16, Pods: []int{3, 2}, Hosts: 4, Rails: 3, RailSpines: own, Spines: 2, Cores: 1}
		f := short.Must(gen.Tree(spec))(t)
		adapters := 0
		for _, p := range f.CAPorts() {
			var r, h, u, pod int
			if n, _ := fmt.Sscanf(f.Node(f.Owner(p)).Description, "adapter %d host %d unit %d pod %d", &r, &h, &u, &pod); n != 4 {
				t.Fatalf("%q", f.Node(f.Owner(p)).Description)
			}
			adapters++
			short.Equal(t, f.PortName(f.Peer(p)), fmt.Sprintf("%q[%d]", fmt.Sprintf("leaf %d unit %d pod %d", r, u, pod), h+1), f.PortName(p), "leads")
		}
		short.Equal(t, adapters, 5*3*4, "adapters, want 60")
		spines := map[string]string{} // by spine: the pod, or the rail of the pod
		for s := range fabric.NodeID(f.NumSwitches()) {
			var r, u, pod int
			if n, _ := fmt.Sscanf(f.Node(s).Description, "leaf %d unit %d pod %d", &r, &u, &pod); n != 3 {
				continue
			}
			block := fmt.Sprint(pod)
			if own {
				block += fmt.Sprint(" rail ", r)
			}
			_, to := f.SwitchLinks(s)
			short.Equal(t, len(to), 2, "spines of", f.Node(s).Description, "want 2")
			for _, spine := range to {
				name := f.Node(spine).Description
				if was, ok := spines[name]; ok && was != block {
					t.Errorf("%q has leaves of %s and of %s", name, was, block)
				}
				spines[name] = block
			}
		}
		want := 4
		if own {
			want = 12
		}
		short.Equal(t, len(spines), want, "spines have leaves")
	}
}

// census counts switches that are alike: by the first word of their descriptions, and how
// many cables they have to nodes by the first word of theirs.
func census(f *fabric.Fabric) map[string]int {
	word := func(n fabric.NodeID) string {
		w, _, _ := strings.Cut(f.Node(n).Description, " ")
		return w
	}
	counts := map[string]int{}
	for s := range fabric.NodeID(f.NumSwitches()) {
		peers := map[string]int{}
		for p := f.PortBase(s) + 1; p < f.PortBase(s+1); p++ {
			if peer := f.Peer(p); peer != fabric.NoPort {
				peers[word(f.Owner(peer))]++
			}
		}
		line := word(s) + ":"
		for _, w := range slices.Sorted(maps.Keys(peers)) {
			line += fmt.Sprintf(" %d %s", peers[w], w)
		}
		counts[line]++
	}
	return counts
}

// Trees as sites have them. The first one has the size of NVIDIA's Selene: 25 units of 20
// hosts with 8 rails.
func TestSites(t *testing.T) {
	selene := gen.TreeSpec{Ports: 40, Pods: []int{7, 7, 7, 4}, Hosts: 20, Rails: 8, RailSpines: true, Spines: 10, Parallel: 2, Cores: 14}
	for _, tt := range []struct {
		name string
		spec gen.TreeSpec
		want map[string]int
	}{
		{"Selene", selene, map[string]int{
			"leaf: 20 adapter 20 spine": 200, "spine: 14 core 14 leaf": 240, "spine: 14 core 8 leaf": 80, "core: 32 spine": 140,
		}},
		{"two levels", gen.TreeSpec{Ports: 12, Pods: []int{4}, Hosts: 4, Spines: 3, Parallel: 2}, map[string]int{"leaf: 4 host 6 spine": 4, "spine: 8 leaf": 3}},
		{"two rails", gen.TreeSpec{Ports: 12, Pods: []int{3}, Hosts: 4, Rails: 2, Spines: 4}, map[string]int{"leaf: 4 adapter 4 spine": 6, "spine: 6 leaf": 4}},
		{"directors", gen.TreeSpec{Ports: 12, Pods: []int{3, 2}, Hosts: 4, Spines: 4, Groups: 2, Cores: 6, Directors: true}, map[string]int{
			"leaf: 4 host 4 line": 5, "line: 3 leaf 6 spine": 4, "line: 2 leaf 6 spine": 4, "spine: 4 line": 12,
		}},
	} {
		f := short.Must(gen.Tree(tt.spec))(t)
		short.Diff(t, census(f), tt.want, tt.name, "switches by their cables")
	}
}

func TestTreeErrors(t *testing.T) {
	good := gen.TreeSpec{Ports: 8, Pods: []int{2, 2}, Hosts: 2, Spines: 2, Cores: 2}
	for _, tt := range []struct {
		change func(*gen.TreeSpec)
		want   string
	}{
		{func(s *gen.TreeSpec) { s.Ports = 0 }, "switches of 0 ports: want 1 to 254"},
		{func(s *gen.TreeSpec) { s.Ports = 255 }, "switches of 255 ports: want 1 to 254"},
		{func(s *gen.TreeSpec) { s.Pods = nil }, "pods of [] leaves: want 1 or more of 1 or more"},
		{func(s *gen.TreeSpec) { s.Pods = []int{2, 0} }, "pods of [2 0] leaves: want 1 or more of 1 or more"},
		{func(s *gen.TreeSpec) { s.Cores = 0 }, "2 pods or rails with spines of their own, and no core switches between them: want 1"},
		{func(s *gen.TreeSpec) { s.Cores = -1 }, "-1 core switches in each of 2 groups: want 0, 1, 0 and 1 or more"},
		{func(s *gen.TreeSpec) { s.Groups = 3 }, "2 spines of a pod below 3 groups of core switches: want as many for each group"},
		{func(s *gen.TreeSpec) { s.Pods, s.Cores, s.Rails, s.RailSpines = []int{2}, 0, 4, true }, "4 pods or rails with spines of their own, and no core"},
		{func(s *gen.TreeSpec) { s.Rails, s.Pods = 1<<32, []int{1 << 32} }, "4294967296 nodes or cables of a kind in a tree: want at most 49151: larger than"},
		{func(s *gen.TreeSpec) { s.Rails, s.RailSpines = 40000, true }, "80000 nodes or cables of a kind in a tree"},
		{func(s *gen.TreeSpec) { s.Cores = 49152 }, "49152 nodes or cables of a kind in a tree"},
		{func(s *gen.TreeSpec) { s.Hosts = 7 }, "9 cables on a leaf: want at most 8, one for each port"},
		{func(s *gen.TreeSpec) { s.Parallel = 4 }, "10 cables on a leaf: want at most 8"},
		{func(s *gen.TreeSpec) { s.Cores = 7 }, "9 cables on a spine: want at most 8"},
		{func(s *gen.TreeSpec) { s.Pods = slices.Repeat([]int{1}, 9) }, "9 cables on a core switch: want at most 8"},
		{func(s *gen.TreeSpec) { s.Ports, s.Pods = 254, slices.Repeat([]int{200}, 250); s.Hosts = 2 }, "larger than InfiniBand can address"},
	} {
		spec := good
		tt.change(&spec)
		if f, err := gen.Tree(spec); err == nil || f != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", spec, err, tt.want)
		}
	}
	if _, err := gen.Tree(good); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		directors, pods, chips, lines int
		want                          string
	}{
		{0, 1, 2, 1, "0 directors of 2 spine chips and 1 line chips for each pod: want 1, 1 and 0 or more"},
		{1, 1, 0, 1, "1 directors of 0 spine chips"},
		{1, 1, 2, -1, "2 spine chips and -1 line chips"},
		{1, 2, 2, 0, "1 director and 2 pods with hosts on line chips: want 1 of each"},
		{2, 1, 2, 0, "2 directors and 1 pod with hosts on line chips: want 1 of each"},
	} {
		spec := gen.TreeSpec{Ports: 8, Pods: slices.Repeat([]int{2}, tt.pods), Hosts: 2, Groups: tt.directors, Cores: tt.chips}
		if f, err := gen.Director(spec, tt.lines); err == nil || f != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	for _, tt := range []struct {
		pods   int
		leaves []int
		want   string
	}{
		{0, []int{1}, "0 pods: want 1 to 49151"},
		{49152, []int{1}, "49152 pods: want 1 to 49151"},
		{2, []int{1, 2, 3}, "3 numbers of leaves for 2 pods: want 1, or one for each pod"},
		{1, nil, "0 numbers of leaves for 1 pod"},
	} {
		if list, err := gen.PodSizes(tt.pods, tt.leaves); err == nil || list != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}
