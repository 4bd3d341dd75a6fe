package topology

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// fatTree makes a two-level fat tree: every one of 2r leaves has a cable to
// each of r spines, and r hosts. LIDs go up from 1.
func fatTree(tb testing.TB, r int, link fabric.Link) *fabric.Fabric {
	tb.Helper()
	var b fabric.Builder
	lid := fabric.LID(0)
	add := func(n fabric.Node) int {
		return short.Must(b.AddNode(n))(tb)
	}
	next := func() fabric.LID { lid++; return lid }
	spines := make([]int, r)
	for i := range spines {
		g := fabric.GUID(0x0002c90000200000 + uint64(i))
		spines[i] = add(fabric.Node{GUID: g, SystemGUID: g, Type: fabric.Switch, NumPorts: fabric.PortNum(2 * r), EnhancedPort0: true, VendorID: 0x2c9, DeviceID: 0xd2f2, Description: fmt.Sprintf("MF0;spine-%02d:MQM9700/U1", i)})
		short.Check(tb, b.SetPort(spines[i], 0, 0, next(), 0))
	}
	for i := range 2 * r {
		g := fabric.GUID(0x0002c90000300000 + uint64(i))
		leaf := add(fabric.Node{GUID: g, SystemGUID: g, Type: fabric.Switch, NumPorts: fabric.PortNum(2 * r), VendorID: 0x2c9, DeviceID: 0xd2f2, Description: fmt.Sprintf("MF0;leaf-%02d:MQM9700/U1", i)})
		short.Check(tb, b.SetPort(leaf, 0, 0, next(), 0))
		for k, s := range spines {
			short.Check(tb, b.Connect(leaf, fabric.PortNum(r+1+k), s, fabric.PortNum(i+1), link))
		}
		for k := range r {
			g := fabric.GUID(0x0002c90000400000 + uint64(2*(i*r+k)))
			h := add(fabric.Node{GUID: g, SystemGUID: g, Type: fabric.CA, NumPorts: 1, VendorID: 0x2c9, DeviceID: 0x1021, Description: fmt.Sprintf("node-%02d-%02d mlx5_0", i, k)})
			short.Check(tb, b.SetPort(h, 1, 0, next(), 0))
			short.Check(tb, b.Connect(h, 1, leaf, fabric.PortNum(k+1), link))
		}
	}
	return short.Must(b.Build())(tb)
}

// stanzas splits a written text into the comment on top and the stanzas.
func stanzas(text string) []string {
	var parts []string
	from := 0
	for i := 0; i+1 < len(text); i++ {
		if text[i] == '\n' && text[i+1] == '\n' {
			parts = append(parts, text[from:i+1])
			from = i + 1
		}
	}
	return append(parts, text[from:])
}

// shuffled puts the stanzas of a text in another order.
func shuffled(text string, seed uint64) string {
	parts := stanzas(text)
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(parts)-1, func(i, j int) { parts[1+i], parts[1+j] = parts[1+j], parts[1+i] })
	out := ""
	for _, s := range parts {
		out += s
	}
	return out
}

// tell is everything that a Fabric holds except Node.Order, a line for each
// node and each port with a cable.
func tell(f *fabric.Fabric) string {
	var b strings.Builder
	for n := fabric.NodeID(0); int(n) < f.NumNodes(); n++ {
		m := f.Node(n)
		fmt.Fprintf(&b, "%s %x %q ports %d", m.Type, uint64(m.GUID), m.Description, m.NumPorts)
		if m.SystemGUID != 0 || m.VendorID != 0 || m.DeviceID != 0 {
			fmt.Fprintf(&b, " system %x vendor %x device %x", uint64(m.SystemGUID), m.VendorID, m.DeviceID)
		}
		if m.EnhancedPort0 {
			b.WriteString(" enhanced")
		}
		for p := fabric.PortNum(0); p <= m.NumPorts; p++ {
			at := f.Port(n, p)
			if p == 0 {
				if m.Type == fabric.Switch {
					tellEndPort(&b, f, at, uint64(m.GUID))
				}
				continue
			}
			peer := f.Peer(at)
			if peer == fabric.NoPort {
				continue
			}
			fmt.Fprintf(&b, "\n  %d to %x %d", p, uint64(f.Node(f.Owner(peer)).GUID), f.Num(peer))
			if l := f.Link(at); l != (fabric.Link{}) {
				fmt.Fprintf(&b, " %dx%s", l.Width, l.Speed)
			}
			if m.Type != fabric.Switch {
				tellEndPort(&b, f, at, uint64(m.GUID)+uint64(p))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func tellEndPort(b *strings.Builder, f *fabric.Fabric, p fabric.PortID, guid uint64) {
	if f.LID(p) != 0 || f.LMC(p) != 0 {
		fmt.Fprintf(b, " lid %d", f.LID(p))
	}
	if f.LMC(p) != 0 {
		fmt.Fprintf(b, " lmc %d", f.LMC(p))
	}
	if g := f.PortGUID(p); uint64(g) != guid {
		fmt.Fprintf(b, " port GUID %x", uint64(g))
	}
}
