package dump

import (
	"fmt"
	"io"
	"net/netip"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
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
		short.Must(fmt.Sscanf(s, "%dx%s", &l.Width, &speed))(t)
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
		short.Must(b.AddNode(fabric.Node{GUID: 1, Type: fabric.Switch, NumPorts: 10}))(t)
		for i, s := range c.links {
			n := short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(10 * (i + 1)), Type: fabric.CA, NumPorts: 1}))(t)
			short.Check(t, b.Connect(0, fabric.PortNum(i+1), n, 1, link(s)))
		}
		f := short.Must(b.Build())(t)
		tree := mft.Tree{Receivers: append([]fabric.PortID{f.PortBase(0)}, f.CAPorts()...)}
		if n := len(f.CAPorts()); n > 1 {
			tree.Receivers, tree.Senders = tree.Receivers[:n], f.CAPorts()[n-1:]
		}
		short.Equal(t, groupRate(f, &tree), c.want, "links", c.links, "rate")
	}
}

// Of many groups, the two that have one MGID are found wherever they are.
func TestOrderGroups(t *testing.T) {
	n := short.Of(2000, 300)
	trees := make([]mft.Tree, n)
	for i := range trees {
		trees[i] = mft.Tree{Name: fmt.Sprint(i), MGID: netip.AddrFrom16([16]byte{0xff, 0x12, 7: byte(i), 15: byte(i >> 8)}), MLID: mft.MinMLID + fabric.LID(n-i)}
	}
	short.Must(orderGroups(trees))(t)
	for i := range n - 1 {
		was := trees[i].MGID
		trees[i].MGID = trees[(i*i+i)%(n-1)+1].MGID
		want := ""
		if j := (i*i+i)%(n-1) + 1; j != i {
			want = fmt.Sprintf("group \"%d\": another tree has the MGID %s", min(i, j), trees[i].MGID)
		}
		got := ""
		if _, err := orderGroups(trees); err != nil {
			got = err.Error()
		}
		short.MustEqual(t, got, want)
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
		{"partitions.conf", func(w io.Writer) error { return WritePartitions(w, f, trees) },
			"Default=0x7fff,ipoib : ALL=full;\nDefault=0x7fff :\n# a: MLID 0xc001\nmgid=ff12:a01d::1,mtu=4,rate=3,sl=0\n" +
				"# b: MLID 0xc003, but OpenSM will give it 0xc002\nmgid=ff15:a01d::2,mtu=4,rate=3,sl=2,scope=5\nNONE;\n"},
		{"no groups", func(w io.Writer) error { return WritePartitions(w, f, nil) }, "Default=0x7fff,ipoib : ALL=full;\n"},
		{"an MGID twice", func(w io.Writer) error {
			return WritePartitions(w, f, []mft.Tree{trees[0], trees[1], trees[0]})
		}, `group "b": another tree has the MGID ff15:a01d::2`},
		{"no MGID", func(w io.Writer) error { return WritePartitions(w, f, []mft.Tree{{Name: "x"}}) }, `group "x": no MGID; want 128 bits like ff12:a01d::1`},
		{"full", func(io.Writer) error { return WritePartitions(full{}, f, nil) }, errFull.Error()},
	} {
		got := ""
		var b writer
		if err := c.write(&b); err != nil {
			got = err.Error()
		} else {
			got = string(b)
		}
		short.Diff(t, got, c.want, c.name)
	}
}

// writer keeps what is written.
type writer []byte

func (w *writer) Write(b []byte) (int, error) {
	*w = append(*w, b...)
	return len(b), nil
}
