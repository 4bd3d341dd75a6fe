package subnet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// dial connects to a simulator, attached to a node, "" for the centre.
func dial(t testing.TB, s *ibsim.Sim, node string) *Client {
	t.Helper()
	conn := short.Must(s.Dial(t.Context(), node))(t)
	// A busy machine may take its time.
	c := New(conn, Options{Timeout: 10 * time.Second})
	t.Cleanup(func() {
		short.Check(t, c.Close())
	})
	return c
}

// ibnetdiscover gives the fabric that the real program finds.
func ibnetdiscover(t testing.TB, s *ibsim.Sim) *fabric.Fabric {
	t.Helper()
	var out bytes.Buffer
	cmd := s.Command(t.Context(), "ibnetdiscover", "-t", "10000")
	cmd.Stdout = &out
	short.Check(t, s.Run(t.Context(), cmd))
	f, _ := short.Must2(topology.Parse("ibnetdiscover", out.Bytes(), topology.Options{}))(t)
	return f
}

func sameFabric(t testing.TB, got, want *fabric.Fabric) {
	t.Helper()
	a, b := topology.Append(nil, got), topology.Append(nil, want)
	if bytes.Equal(a, b) {
		return
	}
	la, lb := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(la), len(lb)) {
		short.EqualList(t, la[i], lb[i], "line", i+1)
	}
	t.Fatalf("%d lines, want %d", len(la), len(lb))
}

// kinds has one fabric of every generator.
func kinds(t testing.TB) map[string]*fabric.Fabric {
	t.Helper()
	fabrics := make(map[string]*fabric.Fabric)
	add := func(name string, f *fabric.Fabric, err error) {
		t.Helper()
		if err == nil {
			f, err = lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs})
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		fabrics[name] = f
	}
	f, err := mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1})
	add("mesh", f, err)
	f, err = mesh.Generate(mesh.Spec{Dims: []int{3, 3, 3}, Wrap: []bool{true, true, true}, Hosts: 2})
	add("torus", f, err)
	f, err = mesh.Hypercube(4, 1)
	add("hypercube", f, err)
	f, err = gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
	add("fattree", f, err)
	f, err = gen.Lattice(64, 7)
	add("lattice", f, err)
	f, err = gen.Irregular(gen.IrregularSpec{Switches: 30, Degree: 4, Hosts: 2, Seed: 5})
	add("irregular", f, err)
	f, err = banyan.Banyan(3, true)
	add("banyan", f, err)
	f, err = gen.Shufflenet(2, 3)
	add("shufflenet", f, err)
	f, err = gen.Myrinet4()
	add("myrinet4", f, err)
	f, err = odd()
	add("odd", f, err)
	return fabrics
}

// odd has what generators do not make: widths and speeds of all kinds, parallel
// cables, a cable from a switch to itself, a CA with two ports on two switches
// and one with a free port, a router, and more than one LID for a port.
func odd() (*fabric.Fabric, error) {
	var b fabric.Builder
	node := func(kind fabric.NodeType, guid fabric.GUID, ports fabric.PortNum, name string) int {
		i, err := b.AddNode(fabric.Node{Type: kind, GUID: guid, SystemGUID: guid, NumPorts: ports, Description: name, VendorID: 0x2c9, DeviceID: 0xd2f0})
		if err != nil {
			panic(err)
		}
		return i
	}
	a, z := node(fabric.Switch, 0x900, 40, "a; switch"), node(fabric.Switch, 0x300, 8, "z")
	two, one, router := node(fabric.CA, 0x10, 2, "two ports"), node(fabric.CA, 0x800, 4, "one port of four"), node(fabric.Router, 0x500, 2, "out")
	err := errors.Join(
		b.Connect(a, 1, z, 1, fabric.Link{Width: 4, Speed: fabric.HDR}),
		b.Connect(a, 40, z, 2, fabric.Link{Width: 12, Speed: fabric.EDR}),
		b.Connect(a, 7, z, 8, fabric.Link{Width: 1, Speed: fabric.FDR}),
		b.Connect(a, 20, a, 22, fabric.Link{Width: 4, Speed: fabric.FDR10}),
		b.Connect(a, 2, two, 1, fabric.Link{Width: 8, Speed: fabric.QDR}),
		b.Connect(z, 3, two, 2, fabric.Link{Width: 4, Speed: fabric.DDR}),
		b.Connect(z, 4, one, 3, fabric.Link{Width: 4, Speed: fabric.SDR}),
		b.Connect(z, 5, router, 1, fabric.Link{Width: 4, Speed: fabric.SDR}),
	)
	if err != nil {
		return nil, err
	}
	return b.Build()
}

// Where it starts, and how many LIDs ports have, changes nothing.
func TestDiscoverOdd(t *testing.T) {
	f := short.Must(odd())(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs, LMC: 2}))(t)
	s, twin := ibsimtest.Start(t, f)
	openSM(t, s, ibsim.OpenSMConfig{LMC: 2})
	want := ibnetdiscover(t, s)
	for n := range fabric.NodeID(twin.Fabric.NumNodes()) {
		// Clients are at the first port of a CA: it must have a cable.
		if p := twin.Fabric.Port(n, 1); twin.Fabric.Peer(p) == fabric.NoPort {
			continue
		}
		c := dial(t, s, twin.NodeID(n))
		d := short.Must(c.Discover(t.Context()))(t)
		if len(d.Problems) > 0 {
			t.Errorf("from node %d: %v", n, d.Problems)
		}
		sameFabric(t, d.Fabric, want)
		short.Equal(t, d.Fabric.LMC(d.Fabric.CAPorts()[0]), 2, "LMC")
		short.Check(t, c.Close())
	}
}

func TestDiscover(t *testing.T) {
	kinds := kinds(t)
	for _, name := range short.Keys(kinds, "mesh", "fattree", "irregular") {
		f := kinds[name]
		t.Run(name, func(t *testing.T) {
			s, _ := ibsimtest.Start(t, f)
			want := ibnetdiscover(t, s)
			c := dial(t, s, "")
			began := time.Now()
			d := short.Must(c.Discover(t.Context()))(t)
			t.Logf("%d requests in %v", d.Requests, time.Since(began))
			if len(d.Problems) > 0 {
				t.Errorf("problems: %v", d.Problems)
			}
			sameFabric(t, d.Fabric, want)
		})
	}
}

// What is read from the switches is what OpenSM says that it wrote.
func TestPull(t *testing.T) {
	short.NeedPrograms(t)
	f, err := mesh.Generate(mesh.Spec{Dims: []int{8, 5}, Hosts: 1}) // two blocks of LIDs
	if err == nil {
		f, err = lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs})
	}
	short.Check(t, err)
	s, twin := ibsimtest.Start(t, f)
	dir := t.TempDir()
	short.Must(ibsim.RunOpenSM(t.Context(), s, ibsim.OpenSMConfig{Engine: "dor", Dir: dir, Flags: 0x43,
		Options: []string{"qos TRUE", "qos_max_vls 8", "qos_sl2vl 0,1,2,3,4,5,6,7,7,6,5,4,3,2,1,0"}}))(t)
	c := dial(t, s, "")
	d := short.Must(c.Discover(t.Context()))(t)
	sameFabric(t, d.Fabric, ibnetdiscover(t, s))
	if d.Local == fabric.NoPort || d.Fabric.Node(d.Fabric.Owner(d.Local)).GUID != twin.Fabric.Node(ibsim.Centre(twin.Fabric)).GUID {
		t.Errorf("the sweep started from %d", d.Local)
	}
	got := short.Must(c.Pull(t.Context(), d, PullOptions{}))(t)
	if len(got.Problems) > 0 || slices.Contains(got.Read, false) {
		t.Errorf("problems: %v", got.Problems)
	}
	read := func(name string) []byte {
		return short.Must(os.ReadFile(filepath.Join(dir, name)))(t)
	}
	want, _ := short.Must2(dump.ReadLFTs("opensm-lfts.dump", read("opensm-lfts.dump"), d.Fabric, dump.Options{}))(t)
	short.MustEqual(t, got.LFT.MaxLID(), want.MaxLID(), "LIDs up")
	for sw := range fabric.NodeID(d.Fabric.NumSwitches()) {
		short.EqualList(t, got.LFT.Row(sw), want.Row(sw), "switch", sw)
	}
	maps, _ := short.Must2(dump.ReadSL2VL("opensm-sl2vl.dump", read("opensm-sl2vl.dump"), d.Fabric, dump.Options{}))(t)
	seven := false
	for p := range fabric.PortID(d.Fabric.NumPorts()) {
		if d.Fabric.Peer(p) == fabric.NoPort {
			continue
		}
		ways := fabric.PortNum(0)
		if n := d.Fabric.Owner(p); d.Fabric.IsSwitch(n) {
			ways = d.Fabric.Node(n).NumPorts
		}
		for in := range ways + 1 {
			if g, w := got.SL2VL.At(in, p), maps.At(in, p); *g != *w {
				t.Fatalf("%s, way in %d: %v, want %v", d.Fabric.PortName(p), in, *g, *w)
			}
		}
		seven = seven || got.SL2VL.At(0, p)[7] == 7
	}
	if !seven {
		t.Error("no port has the SL-to-VL map that was asked for")
	}
	short.Equal(t, len(got.MFT.MLIDs()), 0, "masks of", got.MFT.MLIDs(), "and no port has joined")
}

// Where the SL-to-VL maps of a switch differ, all of them are read, also if only some are asked for first; those of
// other switches are taken from a part. A mask of an MLID far beyond others is found, and with it those of all switches.
func TestPullSome(t *testing.T) {
	s, _ := ibsimtest.Start(t, mesh4x4(t))
	c := dial(t, s, "")
	d := short.Must(c.Discover(t.Context()))(t)
	f := d.Fabric
	lft.EachMap(f, 5, func(in, out fabric.PortNum) {
		data := mad.Data{}
		for i := range 8 {
			data[i] = byte(in) & 7 << 4
		}
		if _, err := c.SMP(t.Context(), Target{Route: d.Routes[5]}, mad.Set, mad.AttrSLtoVLMappingTable, mad.SLtoVLModifier(in, out), &data); err != nil {
			t.Fatal(err)
		}
	})
	for _, sw := range []fabric.NodeID{2, 9} { // block 31 is first asked for at eight switches, of which 9 is one; ibsim keeps 32
		data := mad.Data{0, 2}
		if _, err := c.SMP(t.Context(), Target{Route: d.Routes[sw]}, mad.Set, mad.AttrMulticastForwardingTable, mad.MulticastModifier(31, 0), &data); err != nil {
			t.Fatal(err)
		}
	}
	some := short.Must(c.Pull(t.Context(), d, PullOptions{SomeMaps: true}))(t)
	all, err := c.Pull(t.Context(), d, PullOptions{MaxMLID: mft.MaxMLID})
	if err != nil || some.Maps != all.Maps || all.AskedMaps != all.Maps || some.AskedMaps >= all.AskedMaps/2 || some.Requests >= all.Requests {
		t.Fatalf("%v: %d requests with %d of %d maps, for all %d with %d", err, some.Requests, some.AskedMaps, some.Maps, all.Requests, all.AskedMaps)
	}
	for in, out := range all.SL2VL.PortPairs() {
		short.MustEqual(t, *some.SL2VL.At(in, out), *all.SL2VL.At(in, out), f.PortName(out), "from", in)
	}
	mlid := mft.MinMLID + 31*mad.MLIDBlock
	if !slices.Equal(some.MFT.MLIDs(), []fabric.LID{mlid}) || !slices.Equal(some.MFT.Ports(mlid), all.MFT.Ports(mlid)) || len(all.MFT.Ports(mlid)) != 2 {
		t.Errorf("masks of %#x at %v, want %#x at %v", some.MFT.MLIDs(), some.MFT.Ports(mlid), all.MFT.MLIDs(), all.MFT.Ports(mlid))
	}
}

// The masks that are read are those that were written, whatever the ports.
func TestPullMasks(t *testing.T) {
	s, _ := ibsimtest.Start(t, mesh4x4(t))
	c := dial(t, s, "")
	d := short.Must(c.Discover(t.Context()))(t)
	want := map[fabric.LID][]fabric.PortID{}
	for i, mlid := range []fabric.LID{0xc000, 0xc01f, 0xc020, 0xc3ff} {
		for sw := range fabric.NodeID(d.Fabric.NumSwitches()) {
			if int(sw)%(i+1) != 0 {
				continue
			}
			mask := uint16(1<<i | 1<<(int(sw)%5))
			block := int(mlid-mft.MinMLID) / mad.MLIDBlock
			to := Target{Route: d.Routes[sw]}
			data := short.Must(c.Get(t.Context(), to, mad.AttrMulticastForwardingTable, mad.MulticastModifier(block, 0)))(t)
			binary.BigEndian.PutUint16(data[2*(int(mlid-mft.MinMLID)%mad.MLIDBlock):], mask)
			short.Must(c.SMP(t.Context(), to, mad.Set, mad.AttrMulticastForwardingTable, mad.MulticastModifier(block, 0), &data))(t)
			for b := range 16 {
				if mask>>b&1 != 0 {
					want[mlid] = append(want[mlid], d.Fabric.Port(sw, fabric.PortNum(b)))
				}
			}
		}
	}
	got, err := c.Pull(t.Context(), d, PullOptions{MFT: true})
	if err != nil || len(got.Problems) > 0 {
		t.Fatal(err, got.Problems)
	}
	if got.LFT != nil || got.SL2VL != nil {
		t.Error("tables that were not asked for")
	}
	short.Equal(t, len(got.MFT.MLIDs()), len(want), "MLIDs", got.MFT.MLIDs())
	for mlid, ports := range want {
		slices.Sort(ports)
		short.EqualList(t, got.MFT.Ports(mlid), ports, "MLID", mlid, "ports")
	}
	few := short.Must(c.Pull(t.Context(), d, PullOptions{MFT: true, MaxMLID: 0xc01f}))(t)
	short.EqualList(t, few.MFT.MLIDs(), []fabric.LID{0xc000, 0xc01f}, "up to 0xc01f")
}

// Groups that were joined by our requests are in the switches, as dump_mfts
// prints them.
func TestPullGroups(t *testing.T) {
	s, twin := ibsimtest.Start(t, mesh4x4(t))
	openSM(t, s, ibsim.OpenSMConfig{})
	c := dial(t, s, "")
	m := short.Must(c.Manager(t.Context()))(t)
	mgid := netip.MustParseAddr("ff12:a01d:fe80::7")
	for _, p := range twin.Fabric.CAPorts()[:5] {
		short.Must(c.Join(t.Context(), m, Membership{MGID: mgid, MLID: 0xc007, Port: twin.Fabric.PortGUID(p)}))(t)
	}
	d := short.Must(c.Discover(t.Context()))(t)
	// OpenSM writes the masks soon after the joins.
	var ports []fabric.PortID
	short.Await(t, func() bool {
		got := short.Must(c.Pull(t.Context(), d, PullOptions{MFT: true}))(t)
		members := 0
		ports = got.MFT.Ports(0xc007)
		for _, p := range ports {
			if peer := d.Fabric.Peer(p); peer != fabric.NoPort && slices.Contains(d.Fabric.CAPorts(), peer) {
				members++
			}
		}
		return members == 5
	}, "masks, of ports ", &ports)
}

// A CA is as good a place to start from as a switch.
func TestFromHost(t *testing.T) {
	f := mesh4x4(t)
	s, twin := ibsimtest.Start(t, f)
	want := ibnetdiscover(t, s)
	c := dial(t, s, twin.NodeID(twin.Fabric.Owner(twin.Fabric.CAPorts()[3])))
	d := short.Must(c.Discover(t.Context()))(t)
	sameFabric(t, d.Fabric, want)
	if d.Local == fabric.NoPort || d.Fabric.PortGUID(d.Local) != twin.Fabric.PortGUID(twin.Fabric.CAPorts()[3]) {
		t.Errorf("local port %d", d.Local)
	}
	got, err := c.Pull(t.Context(), d, PullOptions{LFT: true, SL2VL: true})
	if err != nil || len(got.Problems) > 0 {
		t.Errorf("%v, %v", got, err)
	}
	if got.LFT.Switches() != 16 || got.SL2VL.VLs() < 0 {
		t.Errorf("tables of %d switches", got.LFT.Switches())
	}
}
