package dump

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mft"
)

// partitionedFabric is the fabric of testdata/pkeys-*.txt, whose tables OpenSM 3.3.23 wrote on ibsim.
func partitionedFabric(t testing.TB) *fabric.Fabric {
	t.Helper()
	data := short.Must(os.ReadFile("../../audit/partitions/testdata/fabric.ibnetdiscover"))(t)
	f, _ := short.Must2(topology.Parse("fabric", data, topology.Options{}))(t)
	return f
}

// The forms say the same of the same tables.
func TestReadPKeys(t *testing.T) {
	f := partitionedFabric(t)
	text := func(name string) string {
		data := short.Must(os.ReadFile("testdata/" + name))(t)
		return string(data)
	}
	byEnd := func(text string, form Form) (list [][]fabric.PKey) {
		t.Helper()
		short.MustEqual(t, Recognize([]byte(text)), form)
		tables, problems, err := ReadPKeys("in", []byte(text), f, Options{})
		if err != nil || len(problems) > 0 {
			t.Fatal(problems, err)
		}
		f.EndPorts(func(p fabric.PortID) {
			keys := slices.Clone(tables[p])
			slices.SortFunc(keys, func(a, b fabric.PKey) int { return int(a.Partition()) - int(b.Partition()) })
			list = append(list, keys)
		})
		return list
	}
	want := [][]fabric.PKey{{0x7fff}, {0x7fff}, {0x8010, 0xffff}, {0x10, 0x8020, 0x30, 0x7fff}, {0x10, 0x7fff}, {0x8020, 0x7fff}}
	for _, c := range []struct {
		text string
		form Form
	}{{text("pkeys-saquery.txt"), PKeyRecords}, {text("pkeys-smpquery.txt"), SMPQueryPKeys}} {
		short.Diff(t, byEnd(c.text, c.form), want, c.form)
	}
	// What we write is what saquery prints: its records are among ours, and the other way
	// round, except empty blocks.
	tables, _ := short.Must2(ReadPKeys("in", []byte(text("pkeys-saquery.txt")), f, Options{}))(t)
	var b writer
	short.Check(t, WritePKeys(&b, f, tables))
	records := func(text string) (list []string) {
		for _, r := range strings.SplitAfter(text, "\n\n") {
			if strings.Contains(r, "Block......................0\n") {
				list = append(list, r)
			}
		}
		slices.Sort(list)
		return list
	}
	short.Diff(t, records(string(b)), records(text("pkeys-saquery.txt")))
	// Tables of several blocks, and of the ports of a switch.
	many := make([][]fabric.PKey, f.NumPorts())
	for p := range many {
		if n := f.Owner(fabric.PortID(p)); f.IsSwitch(n) || f.Num(fabric.PortID(p)) == 1 {
			many[p] = []fabric.PKey{}
			for i := range 33 * (p % 3) {
				many[p] = append(many[p], fabric.PKey(0x8001+i))
			}
		}
	}
	b = nil
	short.Check(t, WritePKeys(&b, f, many))
	if again, problems, err := ReadPKeys("again", b, f, Options{}); err != nil || problems != nil || !reflect.DeepEqual(again, many) {
		t.Errorf("%v %v: %v, want %v", problems, err, again, many)
	}
	short.Equal(t, WritePKeys(full{}, f, tables), errFull)
}

func TestBrokenPKeys(t *testing.T) {
	f := partitionedFabric(t)
	const record = "PKeyTableRecord dump:\n\t\tLID........................1\n\t\tPort.......................1\n\t\tBlock......................0\n\t\tPKey Table:\n"
	row := strings.Repeat(" 0x7fff", 8) + "\n"
	for _, c := range []struct{ text, want string }{
		{"", "no P_Key tables, the file is empty"},
		{"x\n", "no P_Key tables; want what saquery --smkey 1 PKTR prints"},
		{record, "the last P_Key table has no end"},
		{record + row + row + row, "the last P_Key table has no end"},
		{record + row + record, "the P_Key table before this one has no end"},
		{strings.Replace(record, "1\n", "9\n", 1), "the fabric has no LID 9"},
		{strings.Replace(record, "Port.......................1", "Port.......................2", 1), `"H1" has no port 2`},
		{strings.Replace(record, "Port.......................1", "Port.......................999", 1), `Port "999", want 0 to 254`},
		{record + "x\n", "want up to 8 P_Keys"},
		{"PKeyTableRecord dump:\nx\n", "want LID, Port or Block"},
		{"Lid 1 port 2\n   0: 0x7fff\n", `"H1" has no port 2`},
		{record + row[:len(row)-1] + row, "want up to 8 P_Keys"},
		{"Lid 1\n   0: 0x7fff\n", "the last P_Key table has no end"},
		{"Lid 9\n   0: 0x7fff\n", "the fabric has no LID 9"},
		{"0x0000000000000009\n   0: 0x7fff\n", "the fabric has no end port 0x0000000000000009"},
		{"Lid 1\n   0: 0x7fff\n64 pkeys capacity for this port\n   8: 0x7fff\n", "want a row of smpquery pkeys"},
		{"Lid 1\n   0: 0x7fff\nLid 2\n", "the P_Key table before this one has no end"},
	} {
		tables, problems, err := ReadPKeys("in", []byte(c.text), f, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || tables != nil || problems != nil {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	// A port without a table is said, and so are several.
	_, problems, err := ReadPKeys("in", []byte(record+row+row+row+row), f, Options{})
	if err != nil || len(problems) != 1 || problems[0].Kind != fabric.Missing || !strings.Contains(problems[0].Err.Error(), "no P_Key tables of 5 end ports") {
		t.Error(problems, err)
	}
}

// FuzzReadPKeys: an error means no result; a lenient reader agrees with a strict one that is
// content; what was read can be written and read again.
func FuzzReadPKeys(f *testing.F) {
	fab := partitionedFabric(f)
	row := strings.Repeat("0x7fff 0x8001 ", 4) + "\n"
	f.Add([]byte("PKeyTableRecord dump:\nLID.1\nPort.1\nBlock.0\nPKey Table:\n" + row + row + row + row))
	f.Add([]byte("0x0000000000100001\n   0: 0x7fff 0x8001\n  31:\n64 pkeys capacity for this port\nLid 2 port 7\n0: 0\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lenient, ok := readTwice(t, data, of(fab, ReadPKeys), deeply)
		if !ok {
			return
		}
		dumped := text(t, func(w io.Writer) error { return WritePKeys(w, fab, lenient) })
		if len(bytes.TrimSpace(dumped)) == 0 {
			return
		}
		again, _, err := ReadPKeys("again", dumped, fab, Options{})
		if err != nil || !reflect.DeepEqual(again, lenient) {
			t.Fatalf("%v: %v, want %v\n%s", err, again, lenient, dumped)
		}
	})
}

// What the reader makes of definitions that OpenSM passes over or reads otherwise than they look;
// what it makes of members is compared with the real OpenSM in audit/partitions.
func TestReadPartitions(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // oddities, or the error
	}{
		{"Default=0x7fff : ALL=full;\n", ""},
		{"", "0: no partition is defined"},
		{"# none\n", "0: no partition is defined"},
		{"A=1:0x1=full,\n ALL;", "2: the last word for a port counts: this one makes a limited member of the port of line 1, which was a full one"},
		{"A=1:0x1=full,0x2;\nA=1:ALL=full, SELF;", ""},
		{"A=1:0x1, ALL;\nA:SELF;\nB:ALL;", ""},
		{"A=1:0x1=full;\nA=2:SELF;\nA:ALL;", "3: the last word for a port counts: this one makes a limited member of the port of line 1, which was a full one"},
		{"A=1:0x1=ful1;", `1: membership "ful1" of 0x1: OpenSM takes it for limited`},
		{"A=1:0x1= ;", "1: no membership behind the = of 0x1: OpenSM takes it for full"},
		{"A=1,defmember:ALL;", "1: defmember wants full, limited or both"},
		{"A=1,qos:ALL;", `1: OpenSM knows no flag "qos"`},
		{"A=0x10001:ALL;", "1: P_Key 0x10001 is more than 16 bits: OpenSM takes 0x0001"},
		{"A=1:mgid=fe80::1\nALL;", `1: mgid "fe80::1" is no multicast GID`},
		{"A=1:mgid=ff12::1,sl=1,ALL;", `1: "ALL" behind an mgid is no flag of groups`},
		{"A=1:0x1=full\n ;\nB=2:ALL;", "2: the line begins with a semicolon: OpenSM reads on in what its buffer has of a longer line"},
		{"A=1:0x1\n;B=2:ALL;", "in:2: text behind a semicolon that begins a line"},
		{"A=1:mgid=fe80::1,sl=1;", `in:1: mgid "fe80::1"; want a multicast GID`},
		{"A=1:ALL" + strings.Repeat(" ", 5000) + ",;", "1: the line has more than 4094 bytes"},
		{"A=1:ALL;\r\n", "in:1: no colon"},
		{"A=1:\x00;", "in:1: a byte 0"},
		{"\n\nA=1 ALL;", "in:3: no colon behind the definition of a partition"},
		{"A=1:ALL,\r\nSELF;", "in:1: port \"\\r\"; want the GUID of a port"},
	} {
		conf, err := ReadPartitions("in", []byte(c.text))
		var got []string
		if err != nil {
			got = append(got, err.Error())
		} else {
			for _, o := range conf.Oddities {
				got = append(got, strings.Join([]string{string(rune('0' + o.Line)), o.Text}, ": "))
			}
		}
		if c.want == "" && len(got) == 0 {
			continue
		}
		if len(got) != 1 || c.want == "" || !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%q: %q, want %q", c.text[:min(len(c.text), 60)], got, c.want)
		}
	}
}

// FuzzReadPartitions: an error means no result; partitions ascend and are different.
func FuzzReadPartitions(f *testing.F) {
	f.Add([]byte("Default=0x7fff,ipoib : ALL, SELF=full ;\nA=0x8010, defmember=both : 0x1=full,\n 0x2; # c\nB:mgid=ff12::1,sl=2\nALL_CAS;"))
	f.Add([]byte("A=1:ALL;;\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		conf, err := ReadPartitions("in", data)
		if err != nil {
			if conf != nil {
				t.Fatal("an error and a result")
			}
			return
		}
		for i := range conf.Partitions {
			p := &conf.Partitions[i]
			if p.PKey == 0 || p.PKey.IsFull() || i > 0 && p.PKey <= conf.Partitions[i-1].PKey || len(p.Name) > maxPartitionName {
				t.Fatalf("%+v", p)
			}
		}
	})
}

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
