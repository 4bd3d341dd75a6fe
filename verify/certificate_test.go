package verify

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify/bound"
)

// line is two switches, a host on each.
func line(t testing.TB) (*fabric.Fabric, *lft.Tables) {
	t.Helper()
	var w wiring
	a, b := w.node(fabric.Switch, 2), w.node(fabric.Switch, 2)
	w.cable(a, b)
	w.cable(a, w.node(fabric.CA, 1))
	w.cable(b, w.node(fabric.CA, 1))
	f := number(t, w.fabric(t), nil)
	return f, shortestTables(f, rand.New(rand.NewPCG(1, 1)))
}

// TestCertificateText pins the form. The hash was computed apart from this
// code, by another program from the layout that FabricHash documents.
func TestCertificateText(t *testing.T) {
	f, tables := line(t)
	c := mustCheck(t, &state.State{Fabric: f, Tables: tables}, Options{}).Certificate()
	const want = `ibweave certificate 1 traffic unicast+management vls 1 channels 6 fabric sha256:496ac9f7509c01e2bf4898aabc3134218fa5cf0d75180ba83269aea8c3543933
0x0000000000005000 1 0 1
0x0000000000005000 2 0 2
0x0000000000005100 1 0 1
0x0000000000005100 2 0 2
0x000000000ca00200 1 0 0
0x000000000ca00300 1 0 0
`
	var b bytes.Buffer
	if n, err := b.Write(c.Append(nil)); err != nil || n != b.Len() {
		t.Fatalf("%d of %d bytes, %v", n, b.Len(), err)
	}
	short.Diff(t, b.String(), want)
}

// TestCertificateTextOnLanes has the VLs that packets take, whatever others
// there may be, and none of those that the host of the first switch drops.
func TestCertificateTextOnLanes(t *testing.T) {
	f, tables := line(t)
	m := lft.ConstantVL(1)
	m[0] = 4
	s := lft.NewSL2VL(f, m)
	m[0] = lft.DropVL
	s.SetOut(f.Peer(f.Port(0, 2)), m)
	sls := lft.NewPathSLs(2, f.MaxLID())
	sls.SetRow([]fabric.SL{9, 3, 3, 3, 3}, 0)
	sls.SetRow([]fabric.SL{9, 3, 3, 0, 3}, 1)
	r, _ := compareOn(t, f, tables, s, sls)
	const want = `ibweave certificate 1 traffic unicast+management vls 5 channels 9 fabric sha256:496ac9f7509c01e2bf4898aabc3134218fa5cf0d75180ba83269aea8c3543933
0x0000000000005000 1 1 1
0x0000000000005000 2 1 1
0x0000000000005000 2 4 2
0x0000000000005100 1 1 1
0x0000000000005100 1 4 1
0x0000000000005100 2 1 2
0x000000000ca00200 1 1 0
0x000000000ca00300 1 1 0
0x000000000ca00300 1 4 0
`
	short.Diff(t, string(r.Certificate().Append(nil)), want)
}

// TestCertificateTampered swaps the numbers along each dependency, or makes
// them equal, and leaves each channel out, in turn: the check must name the
// two channels.
func TestCertificateTampered(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var tried [2]int // on one VL, on several
	part := short.Of(short.Usual(1, 3), 10)
	for i := range 60 / part {
		f := randomFabric(t, r)
		tables := upDownTables(f, r)
		var sl2vl *lft.SL2VL
		var sls *lft.PathSLs
		if i%2 == 1 {
			sl2vl, sls = someLanes(f, r)
		}
		good, s := compareOn(t, f, tables, sl2vl, sls)
		short.MustEqual(t, good.Management.CreditLoops, 0, "up*/down* tables have a credit loop")
		tried[i%2] += tamper(t, s, good.Certificate())
	}
	t.Logf("%d dependencies on one VL and %d on several", tried[0], tried[1])
	if part*tried[0] < 1000 || part*tried[1] < 1000 {
		t.Errorf("only %d dependencies", tried)
	}
}

// tamper does so with one certificate, and returns how many dependencies there
// are.
func tamper(t *testing.T, s *slow, good *Certificate) (tried int) {
	t.Helper()
	at := map[channel]int{}
	for i, ch := range good.Channels {
		at[s.numbered(t, ch)] = i
	}
	for a, next := range s.all {
		for b := range next {
			tried++
			c := *good
			c.Channels = slices.Clone(good.Channels)
			x, y := &c.Channels[at[a]], &c.Channels[at[b]]
			if x.Number, y.Number = y.Number, x.Number; tried%2 == 0 {
				y.Number = x.Number
			}
			var bad *DependencyError
			err := c.Check(&state.State{Fabric: s.f, Tables: s.t, SL2VL: s.s, PathSLs: s.sls}, Independent)
			if !errors.As(err, &bad) {
				t.Fatalf("numbers of %s and %s wrong: %v", s.f.PortName(a.port), s.f.PortName(b.port), err)
			}
			in, out := s.numbered(t, bad.In), s.numbered(t, bad.Out)
			if bad.In.Number < bad.Out.Number || !s.all[in][out][bad.LID] {
				t.Errorf("%v names no dependency that does not increase", err)
			}
		}
	}
	for a := range s.all {
		c := *good
		c.Channels = slices.Delete(slices.Clone(good.Channels), at[a], at[a]+1)
		var bad *DependencyError
		if err := c.Check(&state.State{Fabric: s.f, Tables: s.t, SL2VL: s.s, PathSLs: s.sls}, Independent); !errors.As(err, &bad) || bad.In.Number >= 0 && bad.Out.Number >= 0 {
			t.Errorf("channel %v left out: %v", a, err)
		}
	}
	return tried
}

// numbered is the channel that a certificate numbers.
func (s *slow) numbered(t testing.TB, c NumberedChannel) channel {
	t.Helper()
	n, ok := s.f.NodeByGUID(c.GUID)
	if !ok {
		t.Fatalf("no node %s", c.GUID)
	}
	return channel{s.f.Port(n, c.Port), c.VL}
}

// TestCertificateOtherTables adds a turn to XY routing that its numbers do
// not allow.
func TestCertificateOtherTables(t *testing.T) {
	f := xMesh(t, 4, 4, 0)
	xy := func(fabric.LID) bool { return false }
	tables := xyTables(t, f, 4, 4, xy)
	c := mustCheck(t, &state.State{Fabric: f, Tables: tables}, Options{}).Certificate()
	short.Check(t, c.Check(&state.State{Fabric: f, Tables: tables}, Independent))
	lid := f.LID(f.Peer(f.Port(15, 5))) // of the host at (3,3)
	turned := cloneTables(f, tables)
	turned.Row(0)[lid] = 2 // from (0,0) north first, then east as ever
	var bad *DependencyError
	if err := c.Check(&state.State{Fabric: f, Tables: turned}, Independent); !errors.As(err, &bad) || bad.LID != lid {
		t.Errorf("a turn from y to x: %v", err)
	}
	// The same tables on other cabling.
	g := xMesh(t, 4, 5, 0)
	if err := c.Check(&state.State{Fabric: g, Tables: xyTables(t, g, 4, 5, xy)}, Independent); err == nil || !strings.Contains(err.Error(), "other nodes or cables") {
		t.Errorf("other fabric: %v", err)
	}
	if err := c.Check(&state.State{Fabric: f, Tables: lft.NewTables(3, 9)}, Independent); err == nil {
		t.Error("tables of 3 switches pass")
	}
	// Other LIDs do not matter as long as the numbers hold.
	h := numberAtRandom(t, rand.New(rand.NewPCG(1, 1)), f)
	if err := c.Check(&state.State{Fabric: h, Tables: xyTables(t, h, 4, 4, xy)}, Independent); err != nil {
		t.Errorf("other LIDs: %v", err)
	}
}

// TestCertificateNonsense has certificates that cannot be: Check trusts
// nothing that ReadCertificate would have refused either.
func TestCertificateNonsense(t *testing.T) {
	f, tables := line(t)
	for _, c := range []struct {
		want   string
		change func(*Certificate)
	}{
		{"2 VLs", func(c *Certificate) { c.VLs = 2 }},
		{"of 0 VLs", func(c *Certificate) { c.VLs = 0 }},
		{"of -1 VLs", func(c *Certificate) { c.VLs = -1 }},
		{"of 16 VLs", func(c *Certificate) { c.VLs = 16 }},
		{"node 0x0000000000000007, which", func(c *Certificate) { c.Channels[0].GUID = 7 }},
		{"port 3 of", func(c *Certificate) { c.Channels[0].Port = 3 }},
		{"port 4 of", func(c *Certificate) { c.Channels[0].Port = 4 }}, // the next switch has it as port 1
		{"port 0 of", func(c *Certificate) { c.Channels[0].Port = 0 }},
		{"VL 1 the number", func(c *Certificate) { c.Channels[0].VL = 1 }},
		{"the number -3", func(c *Certificate) { c.Channels[0].Number = -3 }},
		{"twice", func(c *Certificate) { c.Channels[1] = c.Channels[0] }},
	} {
		cert := mustCheck(t, &state.State{Fabric: f, Tables: tables}, Options{}).Certificate()
		c.change(cert)
		if err := cert.Check(&state.State{Fabric: f, Tables: tables}, Independent); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q: %v", c.want, err)
		}
	}
}

// TestCertificateUnicastOnly has traffic between hosts without a credit loop
// that management traffic closes.
func TestCertificateUnicastOnly(t *testing.T) {
	f, tables := ring(t, 4)
	// Hosts of 0 and 2 talk the short way over 1 and 3; all else is cut.
	host := func(s fabric.NodeID) fabric.LID { return f.LID(f.Peer(f.Port(s, 3))) }
	for s := range fabric.NodeID(4) {
		for to := range fabric.NodeID(4) {
			if s != to {
				tables.Row(s)[host(to)] = fabric.NoPath
			}
		}
	}
	r, _ := compare(t, f, tables)
	if r.CreditLoops.Count != 0 || r.Management.CreditLoops != 1 {
		t.Fatalf("%+v, %+v", r.CreditLoops, r.Management)
	}
	c := r.Certificate()
	if c == nil || c.Management || !strings.Contains(string(c.Append(nil)), " traffic unicast vls") {
		t.Fatalf("%+v", c)
	}
	c.Management = true
	if err := c.Check(&state.State{Fabric: f, Tables: tables}, Independent); err == nil {
		t.Error("a certificate of unicast traffic passes for management traffic")
	}
}

func TestReadCertificate(t *testing.T) {
	f, tables := line(t)
	good := string(mustCheck(t, &state.State{Fabric: f, Tables: tables}, Options{}).Certificate().Append(nil))
	replace := func(old, by string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %q in %s", old, good)
		}
		return strings.Replace(good, old, by, 1)
	}
	for _, c := range []struct{ text, want string }{
		{"", `c.txt:1: the file ends: want a first line that begins with "ibweave certificate 1"`},
		{"hello\n", `c.txt:1: no certificate that can be read`},
		{replace("certificate 1", "certificate 2"), `c.txt:1: no certificate that can be read`},
		{replace(" vls 1", ""), `c.txt:1: want "ibweave certificate 1 traffic T vls V`},
		{replace("unicast+", "multicast+"), `c.txt:1: traffic "multicast+management": want unicast, and +management or +multicast or both after it`},
		{replace("vls 1", "vls 16"), `c.txt:1: vls "16": want 1 to 15`},
		{replace("channels 6", "channels 7"), `c.txt:8: the file ends: want 7 channels, as the first line says`},
		{replace("channels 6", "channels +6"), `c.txt:1: channels "+6"`},
		{replace("channels 6", "channels 99999999999999999999"), `c.txt:1: channels "99999999999999999999"`},
		{replace("sha256:", "md5:"), `c.txt:1: fabric "md5:`},
		{strings.ToUpper(good[:1]) + good[1:], `c.txt:1: no certificate`},
		{replace("5000 1 0 1\n", "5000 1 0\n"), "c.txt:2: want a GUID, a port, a VL and a number\n    0x0000000000005000 1 0"},
		{replace("0x0000000000005000 1", "0x5000 1"), `c.txt:2: GUID "0x5000": want 0x and 16 hexadecimal digits`},
		{replace("0x0000000000005000 1", "0x500000000000000000 1"), `c.txt:2: GUID`},
		{replace("0x0000000000005000 1 0 1", "0x0000000000005000 0 0 1"), `c.txt:2: port "0": want 1 to 254`},
		{replace("0x0000000000005000 1 0 1", "0x0000000000005000 255 0 1"), `c.txt:2: port "255": want 1 to 254`},
		{replace("0x0000000000005000 1 0 1", "0x0000000000005000 1 1 1"), `c.txt:2: VL 1: want 0 to 0`},
		{replace("0x0000000000005000 1 0 1", "0x0000000000005000 1 15 1"), `c.txt:2: VL "15": want 0 to 14`},
		{replace("0x0000000000005000 1 0 1", "0x0000000000005000 1 0 2147483648"), `c.txt:2: number "2147483648": want 0 to 2147483647`},
		{replace("0x0000000000005000 1 0 1", "0x0000000000005000 1 0 01"), `c.txt:2: number "01"`},
		{replace("0x0000000000005000 2 0", "0x0000000000005000 1 0"), `c.txt:3: channels must ascend`},
		{good + "\n", `c.txt:8: want a GUID`},
		{good[:len(good)-1], `c.txt:7: the line has no end`},
	} {
		got, err := ReadCertificate("c.txt", []byte(c.text))
		var parse *fabric.ParseError
		if !errors.As(err, &parse) || !strings.Contains(err.Error(), c.want) || got != nil {
			t.Errorf("%q:\n%v\nwant %s", c.text, err, c.want)
		}
	}
}

func FuzzReadCertificate(f *testing.F) {
	fab, tables := line(f)
	good := mustCheck(f, &state.State{Fabric: fab, Tables: tables}, Options{}).Certificate().Append(nil)
	f.Add(good)
	f.Add(good[:len(good)/2])
	sl2vl := lft.NewSL2VL(fab, lft.IdentityVLs(3))
	f.Add(mustCheck(f, &state.State{Fabric: fab, Tables: tables, SL2VL: sl2vl}, Options{}).Certificate().Append(nil))
	f.Add([]byte(certificateMagic + " traffic unicast vls 15 channels 0 fabric " + bound.HashPrefix + strings.Repeat("0", 64) + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ReadCertificate("f", data)
		if err != nil {
			if c != nil {
				t.Errorf("%v, and a result", err)
			}
			return
		}
		if got := c.Append(nil); !bytes.Equal(got, data) {
			t.Errorf("written again:\n%s\nwas\n%s", got, data)
		}
		// Whatever it says, checking must come to an end without a panic.
		_ = c.Check(&state.State{Fabric: fab, Tables: tables}, Independent)
		_ = c.Check(&state.State{Fabric: fab, Tables: tables, SL2VL: sl2vl}, Independent)
	})
}

// TestCertificateUnknownSLs: where the SLs of one port on each switch are not known, a
// certificate that is wrong for the known ones is still wrong.
func TestCertificateUnknownSLs(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	wrong := 0
	for range short.Of(short.Usual(60, 30), 8) {
		f := randomFabric(t, r)
		tables := upDownTables(f, r)
		sl2vl, _ := someLanes(f, r)
		for in, out := range sl2vl.PortPairs() { // two SLs stand for all
			m := *sl2vl.At(in, out)
			for sl := range m {
				m[sl] = m[sl%2]
			}
			sl2vl.Set(in, out, m)
		}
		known, partly := lft.NewPathSLs(f.NumSwitches(), f.MaxLID()), lft.UnknownPathSLs(f.NumSwitches(), f.MaxLID())
		for n := range fabric.NodeID(f.NumSwitches()) {
			known.SetRow(slices.Repeat([]fabric.SL{2}, int(f.MaxLID())+1), n)
		}
		for _, port := range f.CAPorts() {
			row := slices.Repeat([]fabric.SL{fabric.SL(2 + r.IntN(2))}, int(f.MaxLID())+1)
			known.SetPorts(row, port)
			partly.SetPorts(row, port)
		}
		full := &state.State{Fabric: f, Tables: tables, SL2VL: sl2vl, PathSLs: known}
		unknown := &state.State{Fabric: f, Tables: tables, SL2VL: sl2vl, PathSLs: partly}
		good := mustCheck(t, full, Options{}).Certificate()
		for i := range good.Channels {
			c := *good
			c.Channels = slices.Clone(good.Channels)
			c.Channels[i].Number = r.Int32N(int32(len(c.Channels)))
			if err := c.Check(full, Independent); err == nil {
				continue
			} else if wrong++; c.Check(unknown, Independent) == nil {
				t.Fatalf("with all SLs: %v; without some: right", err)
			}
		}
	}
	if wrong < 500 {
		t.Errorf("only %d wrong certificates", wrong)
	}
}
