package ibdiagnet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
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

// withCounters puts a section PM_INFO in front of the index of a database: rows of the ports
// with a cable in turn, with each counter in 64 bits and in those of PortCounters.
func withCounters(data []byte, f *fabric.Fabric, rows int, values dump.Counters) []byte {
	if rows == 0 {
		return data
	}
	var ports []fabric.PortID
	for p := range fabric.PortID(f.NumPorts()) {
		if f.Peer(p) != fabric.NoPort {
			ports = append(ports, p)
		}
	}
	b := []byte("\n\nSTART_PM_INFO\nNodeGUID,PortGUID,PortNumber")
	for k := range dump.CounterCount {
		ext := "Ext"
		if k <= dump.RcvPkts {
			ext = "Extended"
		}
		b = fmt.Appendf(b, ",%s%s,%s", k.Info().Name, ext, k.Info().Name)
	}
	b = append(b, '\n')
	for i := 0; i < rows && len(ports) > 0; i++ {
		p := ports[i%len(ports)]
		g := f.Node(f.Owner(p)).GUID
		b = fmt.Appendf(b, "%s,%s,%d", g, g, f.Num(p))
		for k := range dump.CounterCount {
			v := values.Get(k, p)
			if k.Info().Words {
				v.Count /= 4
			}
			b = fmt.Appendf(b, ",0x%016x,%d", v.Count, min(v.Count, 1<<k.Info().Bits-1))
		}
		b = append(b, '\n')
	}
	b = append(b, "END_PM_INFO\n"...)
	index := bytes.Index(data, []byte("\n\nSTART_INDEX_TABLE"))
	return slices.Concat(data[:index], b, data[index:])
}

// What withCounters writes is read back; and of PortCounters alone, as old versions have them, what fits into their bits.
func TestReadCounters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFabric(t)
		want, ports := anyCounters(t, f)
		data := write(t, f, ports, want)
		if ports == 0 {
			if _, err := ReadCounters("x", bytes.NewReader(data), f, Options{}); err == nil || !strings.Contains(err.Error(), "no section PM_INFO") {
				t.Fatal(err)
			}
			return
		}
		old := bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("Extended,"), []byte("Detail,")), []byte("Ext,"), []byte("Detail,"))
		for what, text := range map[string][]byte{"new": data, "CRLF": bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")), "old": old} {
			got, err := ReadCounters("x", bytes.NewReader(text), f, Options{})
			if err != nil || len(got.Problems) > 0 || got.Date != Written {
				t.Fatalf("%s: %v %v", what, err, got)
			}
			for k := range dump.CounterCount {
				for p := range fabric.PortID(f.NumPorts()) {
					v := want.Get(k, p)
					if most := k.Value(1<<k.Info().Bits-1, k.Info().Bits); v.Known && (what == "old" && v.N >= most.N || v.N == most.N) {
						v = most
					}
					if g := got.Get(k, p); g.Count != v.Count || g.N != v.N || g.Known != v.Known || g.Full != v.Full || g.Wrapped {
						t.Fatalf("%s: %s of port %d is %v, want %v", what, k.Info().Name, p, g, v)
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
	d := short.Must(Read("x", strings.NewReader(text), Options{}))(t)
	f := d.Fabric
	got := short.Must(ReadCounters("x", strings.NewReader(counterText), f, Options{}))(t)
	n, _ := f.NodeByGUID(0x10)
	p := f.Port(n, 1)
	for k, want := range map[dump.Counter]dump.CounterValue{dump.XmitData: dump.XmitData.Value(255, 32), dump.SymbolErrors: dump.SymbolErrors.Value(65535, 16), dump.RcvData: {}} {
		short.Equal(t, got.Get(k, p), want, k.Info().Name)
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

// anyRaw draws what a port may have in a counter of some bits: numbers at the ends of all widths, too.
func anyRaw(t *rapid.T, bits int, name string) uint64 {
	most := uint64(1)<<bits - 1
	ends := []uint64{0, 1, 15, 255, 65535, 65536, 1<<32 - 1, 1 << 53, 1<<53 + 1, 1<<62 - 1, 1 << 62, 1<<64 - 40, 1<<64 - 3, 1<<64 - 2, 1<<64 - 1}
	return min(rapid.OneOf(rapid.SampledFrom(ends), rapid.Uint64Range(0, 70000), rapid.Uint64()).Draw(t, name), most)
}

// twoWidths is what a port has in a counter, nil for nothing.
type twoWidths struct{ short, wide *uint64 }

// readBoth reads counters k of a port from PM_INFO and from perfquery, where each has all values, and
// demands that these are alike.
func readBoth(t *rapid.T, f *fabric.Fabric, p fabric.PortID, k dump.Counter, c twoWidths) (fromCSV, fromText *dump.Counters) {
	g, name := f.Node(f.Owner(p)).GUID, k.Info().Name
	cell := func(raw *uint64, format string) string {
		if raw == nil {
			return "N/A"
		}
		return fmt.Sprintf(format, *raw)
	}
	csv := fmt.Sprintf("START_PM_INFO\nNodeGUID,PortGUID,PortNumber,%sExt,%s\n%s,%s,%d,%s,%s\nEND_PM_INFO\n", name, name, g, g, f.Num(p), cell(c.wide, "0x%016x"), cell(c.short, "%d"))
	d := short.Must(ReadCounters("x", strings.NewReader(csv), f, Options{}))(t)
	var blocks []string
	for head, raw := range map[string]*uint64{"# Port counters: ": c.short, "# Port extended counters: ": c.wide} {
		block := fmt.Sprintf("%sLid %d port %d\nPortSelect:......................%d\n", head, f.LID(f.Port(f.Owner(p), 0)), f.Num(p), f.Num(p))
		if raw != nil {
			block += fmt.Sprintf("%s:....................%d\n", name, *raw)
		}
		blocks = append(blocks, block) // in an order of chance
	}
	list, problems, err := dump.ReadCounters("x", []byte(strings.Join(blocks, "")), f, dump.Options{})
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	short.MustEqual(t, d.Get(k, p), list.Get(k, p), "PM_INFO", "perfquery")
	return d.Counters, list
}

// Of a counter in two widths the greater value counts, with all its digits; one at the end of its bits
// is a lower bound, and a difference below zero no count. The sums are those of math/big.
func TestWidths(t *testing.T) {
	db := short.Must(Read("x", strings.NewReader(text), Options{}))(t)
	f := db.Fabric
	n, _ := f.NodeByGUID(0x10)
	p := f.Port(n, 1)
	rapid.Check(t, func(t *rapid.T) {
		k := dump.Counter(rapid.IntRange(0, int(dump.CounterCount)-1).Draw(t, "counter"))
		var c twoWidths
		if rapid.Bool().Draw(t, "short") {
			raw := anyRaw(t, int(k.Info().Bits), "raw")
			c.short = &raw
		}
		if rapid.Bool().Draw(t, "wide") {
			raw := anyRaw(t, 64, "raw of 64 bits")
			c.wide = &raw
		}
		read, _ := readBoth(t, f, p, k, c)
		got := read.Get(k, p)

		most, known, full, wrapped := new(big.Int), false, false, false
		end := new(big.Int).Lsh(big.NewInt(1), uint(k.Info().Bits))
		if c.short != nil {
			known = true
			most.SetUint64(*c.short)
			full = new(big.Int).Add(most, big.NewInt(1)).Cmp(end) == 0
		}
		if c.wide != nil {
			w := new(big.Int).SetUint64(*c.wide)
			below := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 64), w) // 2^64
			switch {
			case below.Cmp(big.NewInt(2)) <= 0: // not there
			case w.BitLen() > 62:
				wrapped = true
				if known && new(big.Int).Mod(w, end).Cmp(most) == 0 {
					known, full = false, false
					most.SetInt64(0)
				}
			case !known || w.Cmp(most) > 0:
				most, known, full = w, true, false
			}
		}
		if k.Info().Words {
			most.Mul(most, big.NewInt(4))
		}
		about, _ := new(big.Float).SetInt(most).Float64()
		if got.Known != known || got.Full != full || got.Wrapped != wrapped || got.N != about {
			t.Fatalf("%s: %+v, want %v known %v full %v wrapped %v", k.Info().Name, got, most, known, full, wrapped)
		}
		short.MustEqual(t, string(short.Must(json.Marshal(got))(t)), most.String(), "JSON, want", most)
	})
}

// A difference is never more than what a port has counted, and exactly that where it is no lower bound,
// whatever of its counters stands at its end, stands at 0, is missing, or was reset.
func TestDifferences(t *testing.T) {
	db := short.Must(Read("x", strings.NewReader(text), Options{}))(t)
	f := db.Fabric
	n, _ := f.NodeByGUID(0x10)
	p := f.Port(n, 1)
	rapid.Check(t, func(t *rapid.T) {
		k := dump.Counter(rapid.IntRange(0, int(dump.CounterCount)-1).Draw(t, "counter"))
		end := uint64(1)<<k.Info().Bits - 1
		amount := rapid.Custom(func(t *rapid.T) uint64 {
			return rapid.SampledFrom([]uint64{0, end / 2, end, 2 * end}).Draw(t, "about") + rapid.Uint64Range(0, end).Draw(t, "more")
		})
		first, after := amount.Draw(t, "first"), amount.Draw(t, "after")
		at := after // since the reset
		reset := rapid.Bool().Draw(t, "reset")
		if reset {
			at = rapid.Uint64Range(0, after).Draw(t, "counted after the reset")
		} else {
			at += first
		}
		dead := rapid.Bool().Draw(t, "64 bits stand at 0")
		live, mode := !dead, ""
		see := func(count uint64) (c twoWidths) {
			short, wide := min(count, end), count
			c.short, c.wide = &short, &wide
			if dead {
				wide = 0
				return c
			}
			has := rapid.SampledFrom([]string{"both", "short", "wide"}).Draw(t, "widths")
			mode += has + " "
			switch has {
			case "short":
				c.wide, live = nil, false
			case "wide":
				c.short = nil
			}
			return c
		}
		before, beforeText := readBoth(t, f, p, k, see(first))
		now, nowText := readBoth(t, f, p, k, see(at))
		d, resets := now.Since(f, before)
		other, _ := nowText.Since(f, beforeText)
		got := d.Get(k, p)
		short.MustEqual(t, got, other.Get(k, p), "PM_INFO", "perfquery")
		if k.Info().Words {
			after, at, first = after*4, at*4, first*4
		}
		if !got.Known || got.Wrapped || got.Count > after || got.N != float64(got.Count) || !got.Full && !reset && got.Count != after {
			t.Fatalf("%s, %s: %+v, %d resets; counted %d", k.Info().Name, mode, got, resets, after)
		}
		if live && !reset && got.Full && now.Get(k, p).N != k.Value(end, k.Info().Bits).N {
			t.Fatalf("%s, %s: %+v is no lower bound, since 64 bits count", k.Info().Name, mode, got)
		}
		if resets > 0 && !reset || live && at < first && !got.Full {
			t.Fatalf("%s, %s: %+v, %d resets; %d after %d", k.Info().Name, mode, got, resets, at, first)
		}
	})
}

// FuzzReadCounters: an error means no result, and a lenient read does not fail where a strict one
// does not, and reads the same then.
func FuzzReadCounters(f *testing.F) {
	d := short.Must(Read("x", strings.NewReader(text), Options{}))(f)
	f.Add([]byte(counterText))
	f.Add(write(f, d.Fabric, 3, dump.Counters{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		strict, err := ReadCounters("x", bytes.NewReader(data), d.Fabric, Options{})
		if (err == nil) != (strict != nil) {
			t.Fatalf("reading %v with error %v", strict, err)
		}
		lenient, err2 := ReadCounters("x", bytes.NewReader(data), d.Fabric, Options{Lenient: true})
		if err == nil && (err2 != nil || !reflect.DeepEqual(strict.Counters, lenient.Counters)) {
			t.Fatalf("a lenient read: %v, %v; want %v", err2, lenient, strict)
		}
	})
}

// PHY_DB16 has a BER as a number and a power of ten, and any number where there is none. CABLE_INFO has the
// temperature of modules, and kinds of alarms; both may have ports that the fabric lacks.
func TestLines(t *testing.T) {
	db := short.Must(Read("x", strings.NewReader(text), Options{}))(t)
	f := db.Fabric
	const lines = counterText + `START_PHY_DB16
NodeGuid,PortGuid,PortNum,field12,field13,field14,field15,field16,field17
0x0000000000000010,0x0000000000000010,1,3,7,15,255,4,12
0x0000000000000020,0x0000000000000021,1,3,7,15,1933785040,15,1933785040
0x0000000000000099,0x0000000000000099,1,3,7,15,255,4,12
END_PHY_DB16
START_CABLE_INFO
NodeGuid,PortGuid,PortNum,Vendor,Temperature (c),TX Bias Alarm and Warning,RX Power Alarm and Warning,HighTemperatureAlarm
0x0000000000000010,0x0000000000000010,1,"X",74,"0","0x0",1
0x0000000000000020,0x0000000000000021,1,"X",N/A,N/A,"0x40",0
END_CABLE_INFO
`
	r := short.Must(ReadCounters("x", strings.NewReader(lines), f, Options{}))(t)
	short.MustEqual(t, len(r.Problems), 1, r)
	for guid, want := range map[fabric.GUID]dump.Line{0x10: {SymbolBER: 4e-12, Celsius: 74, Alarms: 1}, 0x20: {Alarms: 1}} {
		n, _ := f.NodeByGUID(guid)
		if got := r.Lines[f.Port(n, 1)]; math.Abs(got.SymbolBER-want.SymbolBER) > 1e-18 || got.Celsius != want.Celsius || got.Alarms != want.Alarms {
			t.Errorf("%s: %+v, want %+v", guid, got, want)
		}
	}
}
