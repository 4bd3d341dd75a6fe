package dump

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
)

// TestGroupRate: the rate of a group is that of its slowest member, by Gb/s
// and not by the number that stands for it.
func TestGroupRate(t *testing.T) {
	link := func(s string) fabric.Link {
		if s == "" {
			return fabric.Link{}
		}
		var l fabric.Link
		var speed string
		if _, err := fmt.Sscanf(s, "%dx%s", &l.Width, &speed); err != nil {
			t.Fatal(err)
		}
		l.Speed, _ = fabric.ParseSpeed(speed)
		return l
	}
	for _, c := range []struct {
		links []string
		want  uint8
	}{
		{nil, 3}, {[]string{""}, 3}, {[]string{"4xQDR"}, 7}, {[]string{"4xHDR", "", "4xEDR"}, 16}, {[]string{"4xEDR", "12xSDR"}, 4},
		{[]string{"4xFDR", "1xFDR"}, 11}, {[]string{"1xEDR", "4xDDR"}, 6}, {[]string{"1xEDR", "2xFDR"}, 15}, {[]string{"4xNDR"}, 3}, {[]string{"4xQDR", "4xXDR"}, 3},
		{[]string{"12xHDR"}, 22}, {[]string{"8xFDR10"}, 9}, {[]string{"1xSDR"}, 2},
	} {
		var b fabric.Builder
		if _, err := b.AddNode(fabric.Node{GUID: 1, Type: fabric.Switch, NumPorts: 10}); err != nil {
			t.Fatal(err)
		}
		for i, s := range c.links {
			n, err := b.AddNode(fabric.Node{GUID: fabric.GUID(10 * (i + 1)), Type: fabric.CA, NumPorts: 1})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Connect(0, fabric.PortNum(i+1), n, 1, link(s)); err != nil {
				t.Fatal(err)
			}
		}
		f, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		tree := mft.Tree{Receivers: append([]fabric.PortID{f.PortBase(0)}, f.CAPorts()...)}
		if n := len(f.CAPorts()); n > 1 {
			tree.Receivers, tree.Senders = tree.Receivers[:n], f.CAPorts()[n-1:]
		}
		if got := newLinkRates(f).group(&tree); got != c.want {
			t.Errorf("links %q: rate %d, want %d", c.links, got, c.want)
		}
	}
	for code, link := range rates {
		if gbps[link] == 0 {
			t.Errorf("no rate %d, for %s", link, code)
		}
	}
}

// GIDs are printed as netip does, whichever of their groups are zero or short.
func TestAppendGID(t *testing.T) {
	for mask := range 256 {
		for digits := range uint16(4) {
			gid := [16]byte{}
			for i := range uint16(8) {
				if mask>>i&1 != 0 {
					binary.BigEndian.PutUint16(gid[2*i:], 0xa9c1>>(4*((digits+i)%4)))
				}
			}
			a := netip.AddrFrom16(gid)
			if got := string(appendGID([]byte("x"), binary.BigEndian.Uint64(gid[:8]), binary.BigEndian.Uint64(gid[8:]))); !a.Is4In6() && got != "x"+a.String() {
				t.Errorf("%s, want x%s", got, a)
			}
		}
	}
}

// Of many groups, the two that have one MGID are found wherever they are.
func TestGroupKeys(t *testing.T) {
	const n = 2000
	trees := make([]mft.Tree, n)
	for i := range trees {
		trees[i] = mft.Tree{Name: fmt.Sprint(i), MGID: netip.AddrFrom16([16]byte{0xff, 0x12, 7: byte(i), 15: byte(i >> 8)}), MLID: mft.MinMLID + fabric.LID(n-i)}
	}
	if _, err := groupKeys(trees); err != nil {
		t.Fatal(err)
	}
	for i := range n - 1 {
		was := trees[i].MGID
		trees[i].MGID = trees[(i*i+i)%(n-1)+1].MGID
		want := ""
		if j := (i*i+i)%(n-1) + 1; j != i {
			want = fmt.Sprintf("group \"%d\": another tree has the MGID %s", min(i, j), trees[i].MGID)
		}
		got := ""
		if _, err := groupKeys(trees); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Fatalf("%q, want %q", got, want)
		}
		trees[i].MGID = was
	}
}

func TestWriteGroups(t *testing.T) {
	f := pair(t)
	hosts := f.CAPorts()
	trees := []mft.Tree{
		{Name: "b", MGID: mgid(t, "ff15:a01d::2"), MLID: 0xc003, Senders: hosts[:1], SL: 2},
		{Name: "a", MGID: mgid(t, "ff12:a01d::1"), MLID: 0xc001, Senders: hosts, Receivers: append([]fabric.PortID{f.PortBase(1)}, hosts[1:]...)},
	}
	for _, c := range []struct {
		name  string
		write func(io.Writer) error
		want  string // or the error
	}{
		{"partitions.conf", func(w io.Writer) error { return WritePartitions(w, f, trees, GroupOptions{}) },
			"Default=0x7fff,ipoib : ALL=full;\nDefault=0x7fff :\n# a: MLID 0xc001\nmgid=ff12:a01d::1,mtu=4,rate=3,sl=0\n" +
				"# b: MLID 0xc003, but OpenSM will give it 0xc002\nmgid=ff15:a01d::2,mtu=4,rate=3,sl=2,scope=5\nNONE;\n"},
		{"no groups", func(w io.Writer) error { return WritePartitions(w, f, nil, GroupOptions{}) }, "Default=0x7fff,ipoib : ALL=full;\n"},
		{"MTU and rate", func(w io.Writer) error { return WritePartitions(w, f, trees[1:], GroupOptions{MTU: 5, Rate: 16}) },
			"Default=0x7fff,ipoib : ALL=full;\nDefault=0x7fff :\n# a: MLID 0xc001\nmgid=ff12:a01d::1,mtu=5,rate=16,sl=0\nNONE;\n"},
		{"opensm-sa.dump", func(w io.Writer) error { return WriteSADump(w, f, trees, GroupOptions{MTU: 1, Rate: 7}) },
			"MC Group 0xc001: mgid=0xff12a01d00000000:0x0000000000000001 port_gid=0x0000000000000000:0x0000000000000000 qkey=0x00000000 mlid=0xc001 mtu=0x81 tclass=0x00" +
				" pkey=0xffff rate=0x87 pkt_life=0x92 sl_flow_hop=0x00000000 scope_state=0x21 proxy_join=0x0\n\n" +
				"mcm_port: port_gid=0xfe80000000000000:0x000000000000000b scope_state=0x21 proxy_join=0x0\n\n" +
				"mcm_port: port_gid=0xfe80000000000000:0x00000000000000c1 scope_state=0x24 proxy_join=0x0\n\n" +
				"mcm_port: port_gid=0xfe80000000000000:0x00000000000000d1 scope_state=0x21 proxy_join=0x0\n\n" +
				"MC Group 0xc003 (well known): mgid=0xff15a01d00000000:0x0000000000000002 port_gid=0x0000000000000000:0x0000000000000000 qkey=0x00000000 mlid=0xc003 mtu=0x81 tclass=0x00" +
				" pkey=0xffff rate=0x87 pkt_life=0x92 sl_flow_hop=0x200000ff scope_state=0x51 proxy_join=0x0\n\n" +
				"mcm_port: port_gid=0xfe80000000000000:0x00000000000000c1 scope_state=0x54 proxy_join=0x0\n\n"},
		{"MTU too high", func(w io.Writer) error { return WritePartitions(w, f, trees, GroupOptions{MTU: 6}) }, "MTU 6, want 1 to 5 for 256 to 4096 bytes"},
		{"rate too high", func(w io.Writer) error { return WriteSADump(w, f, trees, GroupOptions{Rate: 23}) }, "rate 23, want 2 to 22"},
		{"rate too low", func(w io.Writer) error { return WritePartitions(w, f, trees, GroupOptions{Rate: 1}) }, "rate 1, want 2 to 22"},
		{"an MGID twice", func(w io.Writer) error {
			return WritePartitions(w, f, []mft.Tree{trees[0], trees[1], trees[0]}, GroupOptions{})
		}, `group "b": another tree has the MGID ff15:a01d::2`},
		{"no MGID", func(w io.Writer) error { return WriteSADump(w, f, []mft.Tree{{Name: "x"}}, GroupOptions{}) }, `group "x": no MGID; want 128 bits like ff12:a01d::1`},
		{"a shared MLID", func(w io.Writer) error {
			other := trees[1]
			other.Name, other.MGID = "c", mgid(t, "ff12:a01d::3")
			return WriteSADump(w, f, []mft.Tree{trees[1], other}, GroupOptions{})
		}, `groups "a" and "c" have one MLID, 0xc001, which OpenSM does not do`},
		{"full", func(io.Writer) error { return WritePartitions(full{}, f, nil, GroupOptions{}) }, errFull.Error()},
	} {
		got := ""
		var b writer
		if err := c.write(&b); err != nil {
			got = err.Error()
		} else {
			got = string(b)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// writer keeps what is written.
type writer []byte

func (w *writer) Write(b []byte) (int, error) {
	*w = append(*w, b...)
	return len(b), nil
}
