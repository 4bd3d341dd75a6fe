package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"hash"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

var update = flag.Bool("update", false, "write testdata/golden.txt again")

// goldenTrial is a random fabric with links of several rates, random tables, lanes and
// groups. Nothing in it is of an engine, so that no other package can change it.
func goldenTrial(t *testing.T, seed uint64) *trial {
	t.Helper()
	x := &trial{seed: seed, rng: rand.New(rand.NewPCG(seed, 77))}
	switches := 2 + x.rng.IntN(9)
	const ports = 8
	var b fabric.Builder
	add := func(typ fabric.NodeType, guid int, n fabric.PortNum) int {
		return short.Must(b.AddNode(fabric.Node{Type: typ, GUID: fabric.GUID(guid), NumPorts: n}))(t)
	}
	links := []fabric.Link{{Width: 1, Speed: fabric.SDR}, {Width: 4, Speed: fabric.SDR}, {Width: 1, Speed: fabric.DDR}}
	nodes, used := make([]int, switches), make([]fabric.PortNum, switches)
	connect := func(i, j int, q fabric.PortNum) {
		used[i]++
		short.Check(t, b.Connect(nodes[i], used[i], j, q, links[x.rng.IntN(len(links))]))
	}
	join := func(i, j int) {
		if i != j && used[i] < ports-2 && used[j] < ports-2 {
			used[j]++
			connect(i, nodes[j], used[j])
		}
	}
	for i := range switches {
		nodes[i] = add(fabric.Switch, i+1, ports)
		if i > 0 {
			join(max(0, i-1-x.rng.IntN(2)), i)
		}
	}
	for range x.rng.IntN(2 * switches) {
		join(x.rng.IntN(switches), x.rng.IntN(switches))
	}
	for i := range switches {
		for h := range 1 + x.rng.IntN(2) {
			connect(i, add(fabric.CA, 100+2*i+h, 1), 1)
		}
	}
	f := short.Must(b.Build())(t)
	lids := make([]fabric.LID, f.NumPorts())
	next := fabric.LID(1)
	for _, p := range f.CAPorts() {
		lids[p] = next
		next++
	}
	for s := range fabric.NodeID(f.NumSwitches()) {
		lids[f.PortBase(s)] = next
		next++
	}
	x.f = short.Must(f.WithLIDs(lids, make([]uint8, f.NumPorts())))(t)
	x.hosts = x.f.CAPorts()
	x.net.Fabric = x.f
	x.randomTables()
	x.lanes()
	if x.rng.IntN(2) == 0 && len(x.hosts) >= 3 {
		x.randomTrees(x.members())
	}
	return x
}

// goldenConfig draws hardware of all kinds.
func (x *trial) goldenConfig(copying Copying) Config {
	cfg := x.config(copying)
	cfg.FullChecks = 97
	cfg.Mbps *= x.rng.IntN(2)
	if x.rng.IntN(3) == 0 {
		cfg.RoutingDelay, cfg.WireDelay = 100*Nanosecond, 2350*Picosecond
	}
	if x.rng.IntN(3) == 0 {
		cfg.FlitBytes, cfg.BufferFlits = 3, 4+x.rng.IntN(9)
	}
	if x.rng.IntN(3) == 0 {
		cfg.MTU, cfg.HeaderBytes = 5, x.rng.IntN(3)
	}
	if x.rng.IntN(3) == 0 {
		cfg.Startup = Time(x.rng.IntN(30)) * Nanosecond
	}
	if x.net.SL2VL != nil && x.rng.IntN(3) == 0 {
		for range x.net.SL2VL.VLs() {
			x.rng.IntN(3) // was a weight of the VL: what follows stays as it was recorded
		}
	}
	return cfg
}

// anyRouter goes by the tables, and from time to time by any cable that is free: the
// answers depend on what the simulation has done so far.
type anyRouter struct {
	x   *trial
	rng *rand.Rand
}

func (r anyRouter) Route(s *Sim, at fabric.NodeID, in fabric.PortID, m *Message, to []fabric.PortID) []fabric.PortID {
	ports, _ := r.x.f.SwitchLinks(at)
	if p := ports[r.rng.IntN(len(ports))]; p != in && r.rng.IntN(4) == 0 && s.Free(p, 0) {
		return append(to, p)
	}
	if int(m.DLID) > int(r.x.f.MaxLID()) {
		return to
	}
	return append(to, r.x.f.Port(at, r.x.net.Tables.Row(at)[m.DLID]))
}

// hashing takes all that a driver sees, in the order in which it sees it, and sends
// until it has sent enough.
type hashing struct {
	x    *trial
	hash hash.Hash
	left int
	list []Message
	gap  int64
	err  error
}

func (h *hashing) write(values ...int64) {
	for _, v := range values {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(v))
		h.hash.Write(b[:])
	}
}

func (h *hashing) Deliver(_ *Sim, d *Delivery) {
	last := int64(0)
	if d.Last {
		last = 1
	}
	h.write(int64(d.Src), int64(d.DLID), int64(d.SL), int64(d.Bytes), d.Tag, int64(d.Port), int64(d.At), int64(d.Born), int64(d.Injected), last)
}

func (h *hashing) Wake(s *Sim, id int64) {
	h.write(id, int64(s.Now()))
	if h.left == 0 {
		return
	}
	h.left--
	m := h.list[h.left]
	m.Tag = int64(h.left)
	if err := s.Send(m); err != nil {
		h.err = err
	}
	s.Wake(s.Now()+Time(h.x.rng.Int64N(h.gap)), id)
}

// golden runs a trial and returns a hash of all that can be seen of it, and how many events
// it took.
func (x *trial) golden(t *testing.T, copying Copying) (seen string, events int64) {
	t.Helper()
	h := &hashing{x: x, hash: sha256.New(), gap: []int64{2, 20_000, 500_000}[x.rng.IntN(3)]}
	h.list = x.anyTraffic(x.lids(true))
	h.list = h.list[:min(len(h.list), 300)]
	h.left = len(h.list)
	net, cfg := x.net, x.goldenConfig(copying)
	if x.rng.IntN(5) == 0 {
		net.Router, net.Adaptive = anyRouter{x, rand.New(rand.NewPCG(x.seed, 5))}, nil
	}
	if net.Adaptive != nil {
		net.Tables = nil
	}
	s := mustNew(t, net, cfg, h)
	for i := range x.hosts {
		s.Wake(Time(x.rng.IntN(3))*Nanosecond, int64(i))
	}
	end := ""
	for _, until := range []Time{Microsecond, 3 * Microsecond, 20 * Microsecond} {
		err := s.Run(t.Context(), until)
		if dead, ok := errors.AsType[*DeadlockError](err); ok {
			end = dead.Error()
			break
		} else if err != nil {
			t.Fatalf("%s, %s: %v", x, copying, err)
		}
		c := s.Counts()
		h.write(int64(s.Now()), c.Messages, c.Packets, c.Copies, c.Queued, c.Delivered, c.Dropped, c.Strayed, c.FlitHops, int64(c.LastAt))
	}
	if h.err != nil {
		t.Fatal(h.err)
	}
	if end == "" && s.Counts().Copies > 0 {
		if err := s.Deadlock(); err != nil {
			end = err.Error()
		}
	}
	h.hash.Write([]byte(end))
	for p := range fabric.PortID(x.f.NumPorts()) {
		l := s.Load(p)
		h.write(l.Packets, l.Bytes, int64(l.Busy))
	}
	return hex.EncodeToString(h.hash.Sum(nil)[:8]), s.Counts().Events
}

// TestGolden compares all that can be seen of many random simulations, with all ways to
// copy, arbitration, lanes, rates and routers, to what an earlier version of this
// package did: a faster model has the same results. Who changes the model on
// purpose runs it with -update, and says so.
func TestGolden(t *testing.T) {
	const file = "testdata/golden.txt"
	var out strings.Builder
	for seed := range uint64(short.Of(80, 20)) {
		fmt.Fprint(&out, seed)
		for copying := Independent; copying <= GreedyWormhole; copying++ {
			seen, _ := goldenTrial(t, seed).golden(t, copying)
			fmt.Fprint(&out, " ", seen)
		}
		fmt.Fprintln(&out)
	}
	if *update {
		short.Check(t, os.WriteFile(file, []byte(out.String()), 0o600))
	}
	text := short.Must(os.ReadFile(file))(t)
	want := strings.Split(string(text), "\n")
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if i >= len(want) || line != want[i] {
			t.Errorf("seed and hashes %q, want those of line %d of %s", line, i+1, file)
		}
	}
}
