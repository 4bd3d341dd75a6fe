package dump

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// sameWithCRLF reads a text a second time with lines that end in CRLF. No program
// prints those, so that the quick readers of printed lines leave them to the thorough
// ones: error, problems and result have to be the same.
func sameWithCRLF[T any](t testing.TB, data []byte, read func(data []byte, opt Options) (T, []Problem, error), show func(T) string) {
	t.Helper()
	if bytes.ContainsRune(data, '\r') {
		return
	}
	slow := bytes.ReplaceAll(data, nl, []byte("\r\n"))
	for _, opt := range []Options{{}, {Lenient: true}} {
		result, problems, err := read(data, opt)
		result2, problems2, err2 := read(slow, opt)
		switch {
		case (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error():
			t.Fatalf("%v\nwith CRLF: %v", err, err2)
		case problemLines(problems) != problemLines(problems2):
			t.Fatalf("%s\nwith CRLF:\n%s", problemLines(problems), problemLines(problems2))
		case err == nil && show(result) != show(result2):
			t.Fatalf("%s\nwith CRLF:\n%s", show(result), show(result2))
		}
		for i := range problems {
			if problems[i].Text != problems2[i].Text {
				t.Fatalf("%q with CRLF: %q", problems[i].Text, problems2[i].Text)
			}
		}
	}
}

// Printed texts in which a byte is another, or is missing, or a line comes twice, are
// read by the quick readers as by the thorough ones.
func TestReadDamaged(t *testing.T) {
	fab := meshFabric(t, []int{4, 3}, true)
	_, paths, _ := torusDOR(t, fab, 4, 3)
	tables := mft.NewTables(fab)
	var members, groups []byte
	for m := range fabric.LID(12) {
		var ports []fabric.PortID
		for s := range fabric.NodeID(fab.NumSwitches()) {
			for p := fabric.PortNum(int(m) % 3); p <= fab.Node(s).NumPorts; p += 2 {
				ports = append(ports, fab.Port(s, p))
			}
		}
		tables.Add(mft.MinMLID+1+m, ports)
		id, mlid := fmt.Sprintf("ff12:a01d::%x", m+1), fmt.Sprintf("0x%X", mft.MinMLID+1+m)
		for _, p := range fab.CAPorts()[:m%5] {
			members = append(members, saMember(id, mlid, fmt.Sprintf("fe80::%x:%x", uint16(fab.PortGUID(p)>>16), uint16(fab.PortGUID(p))), "0x21", "0x0")...)
		}
		groups = append(groups, saGroupText(id, mlid, "0x3")...)
	}
	written := func(write func(io.Writer) error) []byte { return text(t, write) }
	showPaths := func(p *lft.PathSLs) string {
		return string(written(func(w io.Writer) error { return WritePathSLs(w, fab, p, WriteOptions{}) }))
	}
	showSA := func(groups []mft.Group) string { return showGroups(fab, groups) }
	random := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		data  []byte
		check func([]byte)
	}{
		{written(func(w io.Writer) error { return WritePathSLs(w, fab, paths, WriteOptions{}) }), func(data []byte) { sameWithCRLF(t, data, reading(ReadPathSLs, fab), showPaths) }},
		{written(func(w io.Writer) error { return WriteIBDMPathSLs(w, fab, paths) }), func(data []byte) { sameWithCRLF(t, data, reading(ReadPathSLs, fab), showPaths) }},
		{written(func(w io.Writer) error { return WriteMCFDBs(w, tables, WriteOptions{}) }), func(data []byte) { sameWithCRLF(t, data, reading(ReadMFTs, fab), masks) }},
		{written(func(w io.Writer) error { return WriteMFTs(w, tables, WriteOptions{}, 0) }), func(data []byte) { sameWithCRLF(t, data, reading(ReadMFTs, fab), masks) }},
		{written(func(w io.Writer) error { return WriteMFTs(w, tables, WriteOptions{Lean: true}, 0) }), func(data []byte) { sameWithCRLF(t, data, reading(ReadMFTs, fab), masks) }},
		{append(members, groups...), func(data []byte) { sameWithCRLF(t, data, reading(ReadSAQuery, fab), showSA) }},
	} {
		c.check(c.data)
		for range 300 {
			at := random.IntN(len(c.data))
			data := slices.Clone(c.data)
			switch random.IntN(4) {
			case 0:
				data = slices.Delete(data, at, at+1)
			case 1: // a line for a second time, further down
				line, next := cutLine(data, at)
				data = slices.Insert(data, next, append(slices.Clone(line), '\n')...)
			case 2: // whatever else the text has
				data[at] = data[random.IntN(len(data))]
			default:
				data[at] = " \n\t0159aAfFx:-.g"[random.IntN(16)]
			}
			c.check(data)
		}
	}
}

// reading binds a reader to a fabric.
func reading[T any](read func(string, []byte, *fabric.Fabric, Options) (T, []Problem, error), f *fabric.Fabric) func([]byte, Options) (T, []Problem, error) {
	return func(data []byte, opt Options) (T, []Problem, error) { return read("in", data, f, opt) }
}

// The order of the hosts has a line each, whatever their descriptions have in them.
func TestWriteCAOrder(t *testing.T) {
	var b fabric.Builder
	for i, n := range []fabric.Node{{GUID: 1, Type: fabric.Switch, NumPorts: 4}, {GUID: 2, Type: fabric.CA, NumPorts: 1, Description: "a\nb"}} {
		if _, err := b.AddNode(n); err != nil {
			t.Fatal(err)
		}
		if err := b.SetPort(i, fabric.PortNum(i), 0, fabric.LID(10+i), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Connect(0, 1, 1, 1, fabric.Link{}); err != nil {
		t.Fatal(err)
	}
	f, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	got := string(text(t, func(w io.Writer) error { return WriteCAOrder(w, f, []fabric.PortID{fabric.NoPort, f.CAPorts()[0]}) }))
	if want := "0xFFFF\tDUMMY\n0x000b\ta b\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
