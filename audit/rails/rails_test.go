package rails_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/rails"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/traffic"
	"github.com/ibweave/ibweave/verify"
)

// draft is a fabric to be changed.
type draft struct {
	t      *testing.T
	f      *fabric.Fabric
	cables [][2]fabric.PortID
	name   map[fabric.NodeID]string
	label  map[fabric.PortID]string
	random *rand.Rand
}

func newDraft(t *testing.T, spec gen.TreeSpec, opt gen.Options, seed uint64) *draft {
	t.Helper()
	f := short.Must(gen.Tree(spec))(t)
	f = short.Must(opt.Apply(f))(t)
	d := &draft{t: t, f: f, name: map[fabric.NodeID]string{}, label: map[fabric.PortID]string{}, random: rand.New(rand.NewPCG(seed, 0))}
	for p := range fabric.PortID(f.NumPorts()) {
		d.label[p] = f.Label(p)
		if f.Peer(p) > p {
			d.cables = append(d.cables, [2]fabric.PortID{p, f.Peer(p)})
		}
	}
	return d
}

// fabric builds the draft, its nodes and cables in random order.
func (d *draft) fabric() *fabric.Fabric {
	d.t.Helper()
	b := &fabric.Builder{}
	must := func(err error) {
		d.t.Helper()
		if err != nil {
			d.t.Fatal(err)
		}
	}
	index := make([]int, d.f.NumNodes())
	for _, n := range d.random.Perm(d.f.NumNodes()) {
		node := *d.f.Node(fabric.NodeID(n))
		if name, has := d.name[fabric.NodeID(n)]; has {
			node.Description = name
		}
		var err error
		index[n], err = b.AddNode(node)
		must(err)
		for num := range node.NumPorts + 1 {
			p := d.f.Port(fabric.NodeID(n), num)
			if guid := d.f.PortGUID(p); guid != 0 {
				must(b.SetPort(index[n], num, guid, fabric.LID(n+1), 0))
			}
			if label := d.label[p]; label != "" {
				must(b.SetLabel(index[n], num, label))
			}
		}
	}
	for _, i := range d.random.Perm(len(d.cables)) {
		p, q := d.cables[i][0], d.cables[i][1]
		must(b.Connect(index[d.f.Owner(p)], d.f.Num(p), index[d.f.Owner(q)], d.f.Num(q), d.f.Link(p)))
	}
	f, err := b.Build()
	must(err)
	return f
}

// adapter is the port of an adapter by its description.
func (d *draft) adapter(description string) fabric.PortID {
	d.t.Helper()
	for n := range fabric.NodeID(d.f.NumNodes()) {
		if d.f.Node(n).Description == description {
			return d.f.Port(n, 1)
		}
	}
	d.t.Fatalf("no %s", description)
	return 0
}

// swap exchanges the far ends of the cables of two ports.
func (d *draft) swap(p, q fabric.PortID) {
	at := func(p fabric.PortID) *fabric.PortID {
		for i := range d.cables {
			for end := range 2 {
				if d.cables[i][end] == p {
					return &d.cables[i][1-end]
				}
			}
		}
		d.t.Fatalf("no cable at %s", d.f.PortName(p))
		return nil
	}
	a, b := at(p), at(q)
	*a, *b = *b, *a
}

// unplug takes the cable of a port away.
func (d *draft) unplug(p fabric.PortID) {
	d.cables = slices.DeleteFunc(d.cables, func(c [2]fabric.PortID) bool { return c[0] == p || c[1] == p })
}

func find(t *testing.T, f *fabric.Fabric) *rails.Result {
	t.Helper()
	return short.Must(rails.Find(f, nil))(t)
}

// findings lists findings by rule and message.
func findings(r *rails.Result) (list []string) {
	for _, f := range r.Findings {
		list = append(list, f.Rule+" "+f.Message)
	}
	return list
}

var specs = map[string]gen.TreeSpec{
	"one unit":      {Ports: 32, Pods: []int{1}, Hosts: 6, Rails: 8, Spines: 4},
	"shared spines": {Ports: 32, Pods: []int{3}, Hosts: 6, Rails: 4, Spines: 4},
	"rail spines":   {Ports: 32, Pods: []int{4, 4}, Hosts: 6, Rails: 4, RailSpines: true, Spines: 2, Cores: 2},
	"two rails":     {Ports: 32, Pods: []int{3}, Hosts: 6, Rails: 2, Spines: 4},
}

// TestFaults makes each fault on each fabric, and wants it to be found and nothing else.
func TestFaults(t *testing.T) {
	for name, spec := range specs {
		units := 0
		for _, n := range spec.Pods {
			units += n
		}
		clean := func(*draft) []string { return nil }
		faults := map[string]func(d *draft) []string{
			"clean": clean,
			"swapped": func(d *draft) []string {
				d.swap(d.adapter("node0003 mlx5_0"), d.adapter("node0003 mlx5_1"))
				return []string{`^rail-swapped node0003 has 2 ports in each other's places: mlx5_0 on .*leaf01.* instead of .*leaf00.* and mlx5_1 on .*leaf00.* instead of .*leaf01`}
			},
			"removed": func(d *draft) []string {
				d.unplug(d.adapter("node0002 mlx5_1"))
				return []string{`^rail-missing 1 host has no port on rail 2, which is on .*leaf01.*: node0002; in their place 1 port without a cable$`}
			},
			"no driver": func(d *draft) []string {
				d.name[d.f.Owner(d.adapter("node0002 mlx5_1"))] = "MT4129 ConnectX7   Mellanox Technologies"
				d.name[d.f.Owner(d.adapter("node0006 mlx5_1"))] = "MT4129 ConnectX7   Mellanox Technologies"
				return []string{`^rail-missing 2 hosts have no port on rail 2, .*: node\[0002,0006\]; in their place 2 adapters that are no hosts: "MT4129 `}
			},
			"renamed": func(d *draft) []string { // a unit or half of it calls its adapters differently
				for k := range spec.Rails {
					for host := 1; host <= min(3*units, 6); host++ {
						d.name[d.f.Owner(d.adapter(fmt.Sprintf("node%04d mlx5_%d", host, k)))] = fmt.Sprintf("node%04d HCA-%d", host, 2*k+1)
					}
				}
				return nil
			},
			"renamed backwards": func(d *draft) []string { // so that leaves tell what the order of names does not
				for k := range spec.Rails {
					for host := 1; host <= 2; host++ {
						d.name[d.f.Owner(d.adapter(fmt.Sprintf("node%04d mlx5_%d", host, k)))] = fmt.Sprintf("node%04d HCA-%d", host, spec.Rails-k)
					}
				}
				return nil
			},
		}
		if spec.Rails > 2 {
			faults["chain"] = func(d *draft) []string {
				d.swap(d.adapter("node0003 mlx5_0"), d.adapter("node0003 mlx5_1"))
				d.swap(d.adapter("node0003 mlx5_1"), d.adapter("node0003 mlx5_2"))
				d.unplug(d.adapter("node0003 mlx5_2"))
				return []string{
					`^rail-mixed "node0003 mlx5_0"\[1\] is on .*leaf01`,
					`^rail-mixed "node0003 mlx5_1"\[1\] is on .*leaf02`,
					`^rail-missing 1 host has no port on rail 3, .*: node0003`,
				}
			}
			faults["login node"] = func(d *draft) []string { // has few adapters, on other rails by their names
				d.name[d.f.Owner(d.adapter("node0003 mlx5_2"))] = "login mlx5_0"
				d.name[d.f.Owner(d.adapter("node0003 mlx5_3"))] = "login mlx5_1"
				return []string{
					`^rail-missing 1 host has no port on rail 3, .*: node0003; in their place 1 adapter that is no host: "login mlx5_0"`,
					`^rail-missing 1 host has no port on rail 4, .*: node0003; in their place 1 adapter that is no host: "login mlx5_1"`,
				}
			}
			faults["turned"] = func(d *draft) []string {
				d.swap(d.adapter("node0003 mlx5_0"), d.adapter("node0003 mlx5_1"))
				d.swap(d.adapter("node0003 mlx5_1"), d.adapter("node0003 mlx5_2"))
				return []string{`^rail-swapped node0003 has 3 ports in each other's places: .*; or the host counts`}
			}
			faults["moved"] = func(d *draft) []string {
				d.unplug(d.adapter("node0003 mlx5_1"))
				d.swap(d.adapter("node0003 mlx5_0"), d.adapter("node0004 mlx5_1"))
				return []string{
					`^rail-mixed "node0003 mlx5_0"\[1\] is on .*leaf01.*, which has rail 2; the hosts beside node0003 have rail 1 on .*leaf00`,
					`^rail-mixed "node0004 mlx5_1"\[1\] is on .*leaf00.*, which has rail 1; the hosts beside node0004 have rail 2 on .*leaf01`,
					`^rail-missing 1 host has no port on rail 2, .*: node0003`,
				}
			}
		}
		if units > 1 && spec.Rails > 2 {
			faults["other unit"] = func(d *draft) []string {
				d.swap(d.adapter("node0003 mlx5_1"), d.adapter("node0009 mlx5_1"))
				return []string{
					`^rail-mixed "node0003 mlx5_1"\[1\] is on .*unit01.*leaf01.*, and the hosts beside node0003 have rail 2 on .*unit00.*leaf01`,
					`^rail-mixed "node0009 mlx5_1"\[1\] is on .*unit00.*leaf01.*, and the hosts beside node0009 have rail 2 on .*unit01.*leaf01`,
				}
			}
			faults["dead leaf"] = func(d *draft) []string { // all hosts of a unit lack a rail
				for host := 7; host <= 12; host++ {
					d.unplug(d.adapter(fmt.Sprintf("node%04d mlx5_2", host)))
				}
				return []string{`^rail-missing 6 hosts have no port on rail 3, nor has any host beside them: node\[0007-0012\]$`}
			}
		}
		for fault, make := range faults {
			t.Run(name+"/"+fault, func(t *testing.T) {
				for seed := range uint64(3) {
					d := newDraft(t, spec, gen.Options{Names: "site", Labels: fault == "renamed"}, seed)
					want := make(d)
					r := find(t, d.fabric())
					got := findings(r)
					short.MustEqual(t, len(got), len(want), "findings", strings.Join(got, "\n"))
					for i := range want {
						if !regexp.MustCompile(want[i]).MatchString(got[i]) {
							t.Errorf("%s, want %s", got[i], want[i])
						}
					}
					level := map[string]int{"rail spines": 2}[name]
					for k, x := range r.Rails {
						if len(r.Rails) != spec.Rails || x.Rail != k+1 || x.Leaves != units && fault != "dead leaf" || x.MeetsAt != max(level, 1) || x.Adapters[len(x.Adapters)-1] != fmt.Sprintf("mlx5_%d", k) {
							t.Errorf("rail %+v of %d", x, len(r.Rails))
						}
					}
				}
			})
		}
	}
}

// TestCure does what messages say to exchange, on hosts whose ports are turned round and on hosts of
// two units that are exchanged, and wants nothing to be wrong then.
func TestCure(t *testing.T) {
	pairs := regexp.MustCompile(`at "([^"]*)"\[(\d+)\] and "([^"]*)"\[(\d+)\]`)
	for _, seed := range short.Part(5, seeds(40)) {
		random := rand.New(rand.NewPCG(seed, 8))
		d := newDraft(t, gen.TreeSpec{Ports: 32, Pods: []int{2}, Hosts: 8, Rails: 4 + random.IntN(4), Spines: 4}, gen.Options{Names: "site"}, seed)
		adapter := func(host, k int) fabric.PortID { return d.adapter(fmt.Sprintf("node%04d mlx5_%d", host, k)) }
		order := random.Perm(4)
		for i := 1; i < 2+random.IntN(3); i++ {
			d.swap(adapter(3, order[i-1]), adapter(3, order[i]))
		}
		d.swap(adapter(5, 2), adapter(10, 2))
		exchanged := map[string]bool{}
		for _, f := range find(t, d.fabric()).Findings {
			for _, m := range pairs.FindAllStringSubmatch(f.Message, -1) {
				p, q := portAt(t, d.f, m[1], m[2]), portAt(t, d.f, m[3], m[4])
				if key := fmt.Sprint(min(p, q), max(p, q)); !exchanged[key] { // each of two hosts has a finding
					exchanged[key] = true
					d.swap(p, q)
				}
			}
		}
		if got := findings(find(t, d.fabric())); len(exchanged) < 2 || got != nil {
			t.Errorf("seed %d, after %d exchanges: %s", seed, len(exchanged), strings.Join(got, "\n"))
		}
	}
}

// portAt is the port of a switch by its name and number.
func portAt(t *testing.T, f *fabric.Fabric, name, num string) fabric.PortID {
	t.Helper()
	n, err := strconv.Atoi(num)
	for s := range fabric.NodeID(f.NumSwitches()) {
		if err == nil && f.Name(s).Text == name {
			return f.Port(s, fabric.PortNum(n))
		}
	}
	t.Fatalf("no port %s of %s", num, name)
	return 0
}

// TestManyFaults makes random faults on up to a quarter of the hosts of each unit, and wants each port and
// each missing rail to be found, and no other.
func TestManyFaults(t *testing.T) {
	for _, seed := range short.Part(5, seeds(40)) {
		random := rand.New(rand.NewPCG(seed, 7))
		spec := gen.TreeSpec{Ports: 64, Pods: []int{1 + random.IntN(3)}, Hosts: 8 + random.IntN(9), Rails: 3 + random.IntN(6), Spines: 4}
		d := newDraft(t, spec, gen.Options{Names: "site", Seed: seed}, seed)
		misplaced, missing := map[string][]int{}, map[string][]int{} // rails by host
		swapped := 0
		for host := range spec.Pods[0] * spec.Hosts {
			if host%spec.Hosts >= spec.Hosts/4 {
				continue
			}
			name := fmt.Sprintf("node%04d", host+1)
			adapter := func(k int) fabric.PortID { return d.adapter(fmt.Sprintf("%s mlx5_%d", name, k)) }
			order := random.Perm(spec.Rails)
			turned := []int{0, 2, 3}[random.IntN(3)]
			if turned > 0 {
				swapped++
				misplaced[name] = slices.Sorted(slices.Values(order[:turned]))
			}
			for i := 1; i < turned; i++ {
				d.swap(adapter(order[i-1]), adapter(order[i]))
			}
			if 2*(turned+1) < spec.Rails+turned && random.IntN(2) == 0 { // not one of these
				d.unplug(adapter(order[turned]))
				missing[name] = []int{order[turned]}
			}
		}
		for unit := range spec.Pods[0] { // none, all or every second of its hosts have other names for adapters
			other := random.IntN(3)
			for host := range spec.Hosts {
				for k := range spec.Rails {
					if name := fmt.Sprintf("node%04d", unit*spec.Hosts+host+1); other == 1 || other == 2 && host%2 == 0 {
						d.name[d.f.Owner(d.adapter(fmt.Sprintf("%s mlx5_%d", name, k)))] = fmt.Sprintf("%s ibp%ds0f0", name, 11+9*k)
					}
				}
			}
		}
		r := find(t, d.fabric())
		gotMisplaced, gotMissing := map[string][]int{}, map[string][]int{}
		for _, h := range r.Hosts {
			for _, p := range h.Ports {
				if p.Home != p.Leaf.Node {
					gotMisplaced[h.Host] = append(gotMisplaced[h.Host], p.Rail-1)
				}
			}
			for _, rail := range h.Missing {
				gotMissing[h.Host] = append(gotMissing[h.Host], rail-1)
			}
		}
		rules := map[string]int{}
		for _, f := range r.Findings {
			if f.Rule == rails.Swapped {
				rules[f.Rule]++
			} else {
				rules[f.Rule] += int(f.Count)
			}
		}
		want := map[string]int{rails.Swapped: swapped, rails.Missing: len(missing)}
		maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
		short.Diff(t, []any{gotMisplaced, gotMissing, rules}, []any{misplaced, missing, want}, "seed", seed, spec, "(-made +found)")
	}
}

func seeds(n uint64) (list []uint64) {
	for seed := range n {
		list = append(list, seed)
	}
	return list
}

// TestNames has hosts that call the same adapter by another name, as drivers count them: labels tell, and without
// labels the host is out of order.
func TestNames(t *testing.T) {
	for _, labels := range []bool{true, false} {
		d := newDraft(t, specs["shared spines"], gen.Options{Names: "site", Labels: labels}, 1)
		for k := range 4 {
			d.name[d.f.Owner(d.adapter(fmt.Sprintf("node0003 mlx5_%d", k)))] = fmt.Sprintf("node0003 mlx5_%d", (k+1)%4)
		}
		got := findings(find(t, d.fabric()))
		want := `^rail-swapped node0003 has 4 ports in each other's places: .*; or the host counts its adapters in another order`
		if labels {
			want = `^rail-swapped node0003 counts its adapters in another order than most hosts, by their labels: mlx5_0 is on rail 4, not 1, mlx5_1 is on rail 1, not 2,`
		}
		if len(got) != 1 || !regexp.MustCompile(want).MatchString(got[0]) {
			t.Errorf("%q, want %s", got, want)
		}
	}
	// Adapters without names: rails are told by the leaves, in the order of these.
	d := newDraft(t, specs["shared spines"], gen.Options{Names: "site"}, 1)
	for n := range fabric.NodeID(d.f.NumNodes()) {
		if host, _, is := strings.Cut(d.f.Node(n).Description, " mlx5_"); is {
			d.name[n] = host
		}
	}
	d.unplug(d.adapter("node0002 mlx5_1"))
	r := find(t, d.fabric())
	if got := findings(r); len(r.Rails) != 4 || len(got) != 1 || !strings.HasPrefix(got[0], "rail-missing 1 host has no port on rail 2") || len(r.Rails[0].Adapters) != 0 {
		t.Errorf("%d rails, %q", len(r.Rails), got)
	}
	// Hosts with one port, and adapters of which no two hosts have the same.
	one := newDraft(t, gen.TreeSpec{Ports: 32, Pods: []int{2}, Hosts: 6, Spines: 2}, gen.Options{Names: "site"}, 1)
	if _, err := rails.Find(one.fabric(), nil); !errors.Is(err, rails.ErrNoRails) {
		t.Error(err)
	}
	for n := range fabric.NodeID(d.f.NumNodes()) {
		if host, _, is := strings.Cut(d.f.Node(n).Description, " mlx5_"); is {
			d.name[n] = fmt.Sprintf("%s ib%d", host, n)
		}
	}
	short.Equal(t, len(short.Must(rails.Find(d.fabric(), nil))(t).Rails), 4, "of adapters that no two hosts have")
	// Hosts with more ports than any have.
	b := &fabric.Builder{}
	for n, node := range []fabric.Node{{GUID: 1, Type: fabric.Switch, NumPorts: 254}, {GUID: 2, Type: fabric.CA, NumPorts: 100, Description: "n1"}, {GUID: 3, Type: fabric.CA, NumPorts: 100, Description: "n2"}} {
		short.Must(b.AddNode(node))(t)
		for p := fabric.PortNum(1); p <= node.NumPorts && n > 0; p++ {
			short.Check(t, errors.Join(b.SetPort(n, p, fabric.GUID(1000*n)+fabric.GUID(p), 0, 0), b.Connect(0, p+fabric.PortNum(100*(n-1)), n, p, fabric.Link{})))
		}
	}
	f := short.Must(b.Build())(t)
	if _, err := rails.Find(f, nil); !errors.Is(err, rails.ErrTooMany) {
		t.Errorf("of hosts with 100 ports: %v", err)
	}
}

// TestLoads counts routes and flows again by following each packet, in tables of which entries are lost, on
// a fabric with ports in the wrong places, and compares all results with those of other orders of the input.
func TestLoads(t *testing.T) {
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			d := newDraft(t, spec, gen.Options{Names: "site", Speeds: []fabric.Speed{fabric.HDR, fabric.NDR}, Seed: 5}, 1)
			d.swap(d.adapter("node0003 mlx5_0"), d.adapter("node0003 mlx5_1"))
			d.unplug(d.adapter("node0002 mlx5_1"))
			var ports []fabric.PortID
			if spec.RailSpines { // a cable between spines of two rails, which makes no spine one of both
				for _, name := range []string{"node0001 mlx5_1", "node0001 mlx5_2"} {
					spine := d.f.Neighbors(d.f.PeerSwitch(d.adapter(name)))[0]
					up, _ := d.f.SwitchLinks(spine)
					d.unplug(up[len(up)-1])
					ports = append(ports, up[len(up)-1])
				}
				d.cables = append(d.cables, [2]fabric.PortID(ports))
			}
			var first []byte
			for range 3 {
				f := d.fabric()
				c := fabrictest.Compile(t, f, "updn", compile.Options{LIDs: lft.LIDOptions{Policy: lft.DenseLIDs, LMC: 1}})
				f = c.Routing.Fabric
				random := rand.New(rand.NewPCG(1, 1))
				if ports != nil { // packets to hosts of rail 2 in another pod take it
					spine, _ := f.NodeByGUID(d.f.Node(d.f.Owner(ports[0])).GUID)
					for n := range fabric.NodeID(f.NumNodes()) {
						if host, is := strings.CutSuffix(f.Node(n).Description, " mlx5_1"); is && host > "node0030" {
							c.Routing.Tables.Row(spine)[f.LID(f.Port(n, 1))] = d.f.Num(ports[0])
						}
					}
				}
				for range 40 {
					row := c.Routing.Tables.Row(fabric.NodeID(random.IntN(f.NumSwitches())))
					row[random.IntN(len(row))] = fabric.PortNum(random.IntN(12))
				}
				r := find(t, f)
				l := short.Must(r.Load(t.Context(), c.Routing.Tables))(t)
				recount(t, f, c.Routing.Tables, r, l)
				data := short.Must(json.Marshal([]any{r, l}))(t)
				if first == nil {
					first = data
				}
				short.Diff(t, string(data), string(first), "another order of the input gives another result")
			}
		})
	}
}

// recount follows every packet by itself.
func recount(t *testing.T, f *fabric.Fabric, tables *lft.Tables, r *rails.Result, l *rails.Loads) {
	t.Helper()
	port := func(e verify.Endpoint) fabric.PortID {
		n, _ := f.NodeByGUID(e.Node)
		return f.Port(n, e.Port)
	}
	// Rails of leaves as r has them, of other switches by the leaves that they are cabled to, level by level.
	of := make([]map[int]bool, f.NumSwitches())
	for s := range of {
		of[s] = map[int]bool{}
	}
	depth := make([]int, f.NumSwitches())
	for _, leaf := range r.Leaves {
		s, _ := f.NodeByGUID(leaf.Switch)
		for _, rail := range leaf.Rails {
			of[s][rail] = true
		}
		depth[s] = 1
	}
	for k := 1; k < 4; k++ {
		for s := range of {
			if depth[s] != k {
				continue
			}
			for _, to := range f.Neighbors(fabric.NodeID(s)) {
				if depth[to] == 0 || depth[to] == k+1 {
					depth[to] = k + 1
					for rail := range of[s] {
						of[to][rail] = true
					}
				}
			}
		}
	}
	ends := make([][]fabric.PortID, len(r.Rails))
	var all []fabric.PortID
	for _, h := range r.Hosts {
		for _, p := range h.Ports {
			ends[p.Rail-1] = append(ends[p.Rail-1], port(p.Port))
			all = append(all, port(p.Port))
		}
	}
	time := func(load map[fabric.PortID]int64, host bool) (most float64) {
		for p, n := range load {
			if isHost := !f.IsSwitch(f.Owner(p)) || f.PeerSwitch(p) == fabric.NoNode; isHost == host {
				most = max(most, float64(n)/float64(f.Link(p).Mbps()))
			}
		}
		return most
	}
	compare := func(what string, got rails.Load, load map[fabric.PortID]int64, flows int64) {
		t.Helper()
		want := 0.0
		if flows > 0 {
			want = max(1, time(load, false)/time(load, true))
		}
		if math.Abs(got.Slowdown-want) > 1e-9 || got.Flows != flows {
			t.Errorf("%s: slowdown %g and %d flows, want %g and %d", what, got.Slowdown, got.Flows, want, flows)
		}
		if got.Busiest != nil {
			p := port(got.Busiest.From)
			if load[p] != got.Busiest.Flows || math.Abs(float64(load[p])/float64(f.Link(p).Mbps())-time(load, false)) > 1e-9 {
				t.Errorf("%s: %s is not the busiest cable", what, f.PortName(p))
			}
		} else if time(load, false) > 0 {
			t.Errorf("%s: no busiest cable", what)
		}
	}
	var routes, lost, leaving int64
	exits := map[string]int64{}
	inside := map[fabric.PortID]int64{}
	for i, pattern := range traffic.Patterns {
		together, sum := map[fabric.PortID]int64{}, int64(0)
		for k := range ends {
			load, flows := map[fabric.PortID]int64{}, int64(0)
			for dst := range ends[k] {
				for src, amount := range pattern.Senders(len(ends[k]), dst) {
					for lid := range f.LIDs(ends[k][dst]) {
						channels, err := tables.Path(f, ends[k][src], lid, nil)
						if err == nil {
							flows += amount
							for _, c := range channels {
								load[c] += amount
								together[c] += amount
							}
						}
						if pattern.Name != traffic.AllToAll.Name {
							continue
						}
						if err != nil {
							lost++
							continue
						}
						routes++
						leaves := false
						for n, c := range channels {
							inside[c]++
							to := f.PeerSwitch(c)
							if to == fabric.NoNode || of[to][k+1] {
								continue
							}
							leaves = true
							if n == 0 || of[f.Owner(c)][k+1] {
								exits[fmt.Sprint(k+1, f.PortName(c))]++
							}
						}
						if leaves {
							leaving++
						}
					}
				}
			}
			compare(fmt.Sprint(pattern.Name, " of rail ", k+1), l.Patterns[i].Rails[k], load, flows)
			sum += flows
		}
		compare(pattern.Name, l.Patterns[i].Together, together, sum)
	}
	if l.Routes != routes || l.Lost != lost || l.Leaving != leaving || leaving == 0 || lost == 0 {
		t.Errorf("%d routes, %d lost, %d leaving, want %d, %d, %d", l.Routes, l.Lost, l.Leaving, routes, lost, leaving)
	}
	for _, e := range l.Exits {
		key := fmt.Sprint(e.Rail, f.PortName(port(e.From)))
		short.Equal(t, exits[key], e.Flows, "routes leave rail", e.Rail, "by", e.From)
		delete(exits, key)
	}
	if len(exits) > 0 {
		t.Errorf("exits that are not listed: %v", exits)
	}
	between, flows := map[fabric.PortID]int64{}, int64(0)
	for _, src := range all {
		for _, dst := range all {
			for lid := range f.LIDs(dst) {
				channels, err := tables.Path(f, src, lid, nil)
				if err != nil || src == dst {
					continue
				}
				flows++
				for _, c := range channels {
					between[c]++
				}
			}
		}
	}
	for c, n := range inside {
		between[c] -= n
	}
	compare("between rails", l.Between, between, flows-routes)
}
