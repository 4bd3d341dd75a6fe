package banyan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/sminterface/rehearse"
	"github.com/ibweave/ibweave/sminterface/subnet"
)

// TestInOpenSM puts the tables into the real OpenSM on the real ibsim, and
// compares every entry that the switches then have.
func TestInOpenSM(t *testing.T) {
	for _, wrap := range []bool{false, true} {
		r := route(t, banyan(t, 3, wrap), 0, 0)
		got := short.Must(rehearse.Run(t.Context(), r.Fabric, r.Tables, rehearse.Options{}))(t)
		if got.EqualSwitches != r.Fabric.NumSwitches() || got.Differences != 0 {
			t.Errorf("wrap-around %v: %d of %d switches equal, %d entries differ: %v", wrap, got.EqualSwitches, r.Fabric.NumSwitches(), got.Differences, got.Samples)
		}
	}
}

// TestMasksInIBSim writes the masks of every region of eight processors into the
// switches of the real ibsim by SMPs, has dump_mfts of infiniband-diags read
// them, and sends packets by what that prints.
func TestMasksInIBSim(t *testing.T) {
	r := route(t, banyan(t, 3, true), 0, 0)
	w := short.Must(Detect(r.Fabric))(t)
	f := r.Fabric
	var groups []mft.Group
	var regions [][]int
	for lo := range w.Size() {
		for hi := range w.Size() {
			if lo <= hi || lo >= 4 && hi < 4 {
				regions = append(regions, region(3, lo, hi))
				groups = append(groups, w.Group(fmt.Sprintf("region %d-%d", lo, hi), regions[len(regions)-1]...))
			}
		}
	}
	p := mustBuild(t, r, groups...)

	file := filepath.Join(t.TempDir(), "banyan.topo")
	short.Check(t, os.WriteFile(file, topology.Append(nil, f), 0o600))
	sim := short.Must(ibsim.Start(t.Context(), file, ibsim.Config{
		Nodes: f.NumNodes(), Switches: f.NumSwitches(), Ports: f.NumPorts(),
		Host: fmt.Sprintf("S-%016x", uint64(f.Node(0).GUID)),
	}))(t)
	defer func() {
		short.Check(t, sim.Close())
	}()
	setMasks(t, sim, p.Tables)

	cmd := sim.Command(t.Context(), "dump_mfts")
	var out bytes.Buffer
	cmd.Stdout = &out
	short.Check(t, sim.Run(t.Context(), cmd))
	tables, problems, err := dump.ReadMFTs("dump_mfts", out.Bytes(), f, dump.Options{})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	for _, x := range p.Trees {
		for source := range w.Size() {
			_, copies := flood(t, w, tables, x.MLID, source)
			for a := range w.Size() {
				want := 0
				if slices.Contains(regions[x.Group], a) {
					want = 1
				}
				short.Equal(t, copies[a], want, x.Name, "from", source, "copies at", a)
			}
		}
		short.EqualList(t, tables.Ports(x.MLID), p.Tables.Ports(x.MLID), x.Name, "ports", "in the masks")
	}
}

// setMasks writes multicast tables into switches that have none.
func setMasks(t *testing.T, sim *ibsim.Sim, tables *mft.Tables) {
	t.Helper()
	conn := short.Must(sim.Dial(t.Context(), ""))(t)
	c := subnet.New(conn, subnet.Options{Timeout: 20 * time.Second})
	defer func() {
		short.Check(t, c.Close())
	}()
	d := short.Must(c.Discover(t.Context()))(t)
	f := tables.Fabric()
	for s := range fabric.NodeID(f.NumSwitches()) {
		// All ports of an element are in the first position of a mask.
		blocks := make([]mad.MulticastForwardingTable, (len(tables.MLIDs())+1)/mad.MLIDBlock+1)
		for _, l := range tables.MLIDs() {
			i := int(l - mft.MinMLID)
			for _, port := range tables.Mask(s, l) {
				blocks[i/mad.MLIDBlock][i%mad.MLIDBlock] |= 1 << f.Num(port)
			}
		}
		found, ok := d.Fabric.SwitchByGUID(f.Node(s).GUID)
		if !ok {
			t.Fatalf("no switch %s", f.Node(s).GUID)
		}
		for i := range blocks {
			var data mad.Data
			for k, mask := range blocks[i] {
				binary.BigEndian.PutUint16(data[2*k:], mask)
			}
			short.Must(c.SMP(t.Context(), subnet.Target{Route: d.Routes[found]}, mad.Set, mad.AttrMulticastForwardingTable, mad.MulticastModifier(i, 0), &data))(t)
		}
	}
}
