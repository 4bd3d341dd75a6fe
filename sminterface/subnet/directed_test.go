package subnet

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// watched is a transport that counts packets by class.
type watched struct {
	Transport
	mu      sync.Mutex
	classes map[mad.Class]int
	byLID   int // packets to QP0 with a LID
}

func (w *watched) Send(p *mad.Packet) error {
	w.mu.Lock()
	w.classes[mad.Class(p.Data[1])]++
	if p.QP == mad.QP0 && p.LID != mad.PermissiveLID {
		w.byLID++
	}
	w.mu.Unlock()
	return w.Transport.Send(p)
}

// Discover and Pull send SMPs by directed routes alone, which need neither tables nor LIDs:
// where tables send packets anywhere, all switches have one LID and hosts have none, they
// read what is there. Of a fabric of planes that is the plane where they start, since
// adapters pass no SMPs on.
func TestDirectedRoutesAlone(t *testing.T) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2}))(t)
	f = short.Must(gen.Options{Planes: 4, AggregationNodes: true}.Apply(f))(t)
	s, twin := ibsimtest.Start(t, f)
	for plane, chip := range twin.Fabric.Systems()[0] {
		t.Run(fmt.Sprint(plane), func(t *testing.T) { readPlane(t, s, twin, chip) })
	}
}

// readPlane spoils a plane and reads it. Each has 6 switches with an aggregation node each,
// and ports of 8 hosts.
func readPlane(t *testing.T, s *ibsim.Sim, twin *ibsim.Twin, chip fabric.NodeID) {
	conn := short.Must(s.Dial(t.Context(), twin.NodeID(chip)))(t)
	w := &watched{Transport: conn, classes: map[mad.Class]int{}}
	c := New(w, Options{Timeout: 10 * time.Second})
	defer func() {
		short.Check(t, c.Close())
	}()
	d := short.Must(c.Discover(t.Context()))(t)
	const top = lft.BlockSize - 1
	rnd := rand.New(rand.NewPCG(1, 8))
	change := func(to Target, attr mad.Attribute, modifier uint32, edit func(*mad.Data)) {
		t.Helper()
		data, err := c.Get(t.Context(), to, attr, modifier)
		if err == nil {
			edit(&data)
			_, err = c.SMP(t.Context(), to, mad.Set, attr, modifier, &data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := make([][]fabric.PortNum, d.Fabric.NumSwitches())
	for sw := range want {
		to, ports := Target{Route: d.Routes[sw]}, int(d.Fabric.Node(fabric.NodeID(sw)).NumPorts)
		change(to, mad.AttrSwitchInfo, 0, func(b *mad.Data) { binary.BigEndian.PutUint16(b[6:], top) })
		change(to, mad.AttrLinearForwardingTable, 0, func(b *mad.Data) {
			for l := range b {
				b[l] = byte(rnd.IntN(ports + 1))
				want[sw] = append(want[sw], fabric.PortNum(b[l]))
			}
		})
		change(to, mad.AttrPortInfo, 0, func(b *mad.Data) {
			binary.BigEndian.PutUint16(b[16:], 1) // the LID of all switches
			b[32], b[33] = b[32]&0xf0, b[33]&0x0f // states stay
		})
	}
	again := short.Must(c.Discover(t.Context()))(t)
	got := short.Must(c.Pull(t.Context(), again, PullOptions{LFT: true, MFT: true, SL2VL: true}))(t)
	if g := again.Fabric; !fabric.SameTopology(g, d.Fabric) || g.NumSwitches() != 6 || g.NumNodes() != 20 || g.NumLinks() != 22 || slices.Contains(got.Read, false) || len(got.Problems) > 0 {
		t.Errorf("%d nodes and %d cables; tables of %d switches read: %v", g.NumNodes(), g.NumLinks(), len(got.Read), got.Problems)
	}
	if len(again.Problems) != 5 || !strings.Contains(again.Problems[0].Message, "LID 1 is another port's too") {
		t.Errorf("problems of the sweep: %v", again.Problems)
	}
	for sw := range want {
		if row := got.LFT.Row(fabric.NodeID(sw)); !slices.Equal(row[:len(want[sw])], want[sw]) {
			t.Errorf("switch %d has %v, want %v", sw, row, want[sw])
		}
	}
	if w.byLID > 0 || len(w.classes) != 1 || w.classes[mad.SubnDirected] == 0 {
		t.Errorf("packets by class: %v, %d SMPs by LID", w.classes, w.byLID)
	}
}
