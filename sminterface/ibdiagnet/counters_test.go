package ibdiagnet

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// anyCounters draws counters of the ports with a cable.
func anyCounters(t *rapid.T, f *fabric.Fabric) (c dump.Counters, ports int) {
	for p := range fabric.PortID(f.NumPorts()) {
		if f.Peer(p) == fabric.NoPort {
			continue
		}
		ports++
		for k := range dump.CounterCount {
			c.Set(f, k, p, k.Value(rapid.Uint64Range(0, 1<<rapid.IntRange(0, 50).Draw(t, "bits")).Draw(t, k.Info().Name), 64))
		}
	}
	return c, ports
}

// What Write writes of counters is read back, by the index and without; and of PortCounters
// alone, as old versions have them, what fits into their bits.
func TestReadCounters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFabric(t)
		want, ports := anyCounters(t, f)
		data := write(t, f, WriteOptions{Counters: ports, Values: want})
		if ports == 0 {
			if _, err := ReadCounters("x", bytes.NewReader(data), f, Options{}); err == nil || !strings.Contains(err.Error(), "no section PM_INFO") {
				t.Fatal(err)
			}
			return
		}
		old := bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("Extended,"), []byte("Detail,")), []byte("Ext,"), []byte("Detail,"))
		for what, text := range map[string][]byte{"new": data, "CRLF": bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")), "old": old} {
			for _, from := range []interface{ Read([]byte) (int, error) }{bytes.NewReader(text), stream{bytes.NewReader(text)}} {
				got, err := ReadCounters("x", from, f, Options{})
				if err != nil || len(got.Problems) > 0 || got.Run.Date != Written {
					t.Fatalf("%s: %v %v", what, err, got)
				}
				for k := range dump.CounterCount {
					for p, v := range want.At[k] {
						if most := k.Value(1<<k.Info().Bits-1, k.Info().Bits); what == "old" && v.Known && v.N >= most.N {
							v = most
						}
						if g := got.Get(k, fabric.PortID(p)); g != v {
							t.Fatalf("%s: %s of port %d is %v, want %v", what, k.Info().Name, p, g, v)
						}
					}
				}
			}
		}
	})
}

// counterText is a database of counters alone, in which not all versions would have all columns.
const counterText = `START_PM_INFO
NodeGUID,PortGUID,PortNumber,PortXmitDataExtended,PortXmitData,SymbolErrorCounterExt,SymbolErrorCounter,max_retransmission_rate
0x0000000000000010,0x0000000000000010,1,0xfffffffffffffffe,0x000000ff,N/A,65535,N/A
0x0000000000000020,0x0000000000000021,1,16,3,N/A,N/A,0
END_PM_INFO
`

func TestReadCountersOfVersions(t *testing.T) {
	d, err := Read("x", strings.NewReader(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := d.Fabric
	got, err := ReadCounters("x", strings.NewReader(counterText), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, _ := f.NodeByGUID(0x10)
	p := f.Port(n, 1)
	for k, want := range map[dump.Counter]dump.CounterValue{dump.XmitData: {N: 4 * 255, Known: true}, dump.SymbolErrors: {N: 65535, Known: true, Full: true}, dump.RcvData: {}} {
		if v := got.Get(k, p); v != want {
			t.Errorf("%s is %v, want %v", k.Info().Name, v, want)
		}
	}
	if v := got.Get(dump.XmitData, f.Peer(p)); v.N != 64 || got.Get(dump.SymbolErrors, f.Peer(p)).Known {
		t.Errorf("%v", v)
	}
	for _, c := range []struct {
		old, broken, want string
		fatal             bool // for a lenient read, too
	}{
		{"0020,0x", "0021,0x", "x:4: PM_INFO: the fabric has no port 0x0000000000000021[1]", false},
		{"0021,1,", "0021,2,", "x:4: PM_INFO: the fabric has no port 0x0000000000000020[2]", false},
		{",65535", ",65536", "want at most 65535", false},
		{",16,", ",-1,", "want a number", false},
		{"0x0000000000000020", "0x0000000000000010", "has a row in line 3, too", false},
		{"PM_INFO\nN", "XM_INFO\nN", "no section PM_INFO", true},
		{"PortNumber", "PortNo", "PM_INFO has no column portnumber", true},
	} {
		text := strings.Replace(counterText, c.old, c.broken, 1)
		if _, err := ReadCounters("x", strings.NewReader(text), f, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", text, err)
		}
		if got, err := ReadCounters("x", strings.NewReader(text), f, Options{Lenient: true}); c.fatal != (err != nil) || err == nil && len(got.Problems) != 1 {
			t.Errorf("%s: lenient: %v %v", text, err, got)
		}
	}
}

// FuzzReadCounters: an error means no result, and a lenient read does not fail where a strict one
// does not, and reads the same then.
func FuzzReadCounters(f *testing.F) {
	d, err := Read("x", strings.NewReader(text), Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(counterText))
	f.Add(write(f, d.Fabric, WriteOptions{Counters: 3}))
	f.Fuzz(func(t *testing.T, data []byte) {
		strict, err := ReadCounters("x", bytes.NewReader(data), d.Fabric, Options{})
		if (err == nil) != (strict != nil) {
			t.Fatalf("reading %v with error %v", strict, err)
		}
		lenient, err2 := ReadCounters("x", stream{bytes.NewReader(data)}, d.Fabric, Options{Lenient: true})
		if err == nil && (err2 != nil || !reflect.DeepEqual(strict.Counters, lenient.Counters)) {
			t.Fatalf("a lenient read: %v, %v; want %v", err2, lenient, strict)
		}
	})
}
