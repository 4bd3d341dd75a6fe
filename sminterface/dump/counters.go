package dump

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
)

// Counter is a counter of a port in PortCounters (IBA
// 16.1.3.5), or the blocks that FEC did not correct.
type Counter uint8

// The counters, those of traffic first.
const (
	XmitData Counter = iota
	RcvData
	XmitPkts
	RcvPkts
	XmitWait
	XmitDiscards
	SymbolErrors
	LinkRecovers
	LinkDowned
	RcvErrors
	LocalIntegrityErrors
	FECUncorrectable
	RcvRemoteErrors
	RcvRelayErrors
	XmitConstraintErrors
	RcvConstraintErrors
	BufferOverruns
	VL15Dropped
	CounterCount
)

// CounterInfo describes a counter.
type CounterInfo struct {
	Name  string // in IBA, and in what infiniband-diags and ibdiagnet print
	Unit  string
	Bits  uint8 // in PortCounters, where it stops at its greatest value
	Words bool  // it counts words of four bytes; a CounterValue counts bytes
}

// counterInfos is the table of counters, by Counter.
var counterInfos = [CounterCount]CounterInfo{
	XmitData:             {"PortXmitData", "bytes", 32, true},
	RcvData:              {"PortRcvData", "bytes", 32, true},
	XmitPkts:             {"PortXmitPkts", "packets", 32, false},
	RcvPkts:              {"PortRcvPkts", "packets", 32, false},
	XmitWait:             {"PortXmitWait", "ticks", 32, false},
	XmitDiscards:         {"PortXmitDiscards", "packets", 16, false},
	SymbolErrors:         {"SymbolErrorCounter", "errors", 16, false},
	LinkRecovers:         {"LinkErrorRecoveryCounter", "events", 8, false},
	LinkDowned:           {"LinkDownedCounter", "events", 8, false},
	RcvErrors:            {"PortRcvErrors", "packets", 16, false},
	LocalIntegrityErrors: {"LocalLinkIntegrityErrors", "errors", 4, false},
	FECUncorrectable:     {"PortFECUncorrectableBlockCounter", "blocks", 32, false},
	RcvRemoteErrors:      {"PortRcvRemotePhysicalErrors", "packets", 16, false},
	RcvRelayErrors:       {"PortRcvSwitchRelayErrors", "packets", 16, false},
	XmitConstraintErrors: {"PortXmitConstraintErrors", "packets", 8, false},
	RcvConstraintErrors:  {"PortRcvConstraintErrors", "packets", 8, false},
	BufferOverruns:       {"ExcessiveBufferOverrunErrors", "errors", 4, false},
	VL15Dropped:          {"VL15Dropped", "packets", 16, false},
}

// Info returns the row of the counter in the table.
func (k Counter) Info() CounterInfo {
	if k < CounterCount {
		return counterInfos[k]
	}
	return CounterInfo{Name: "counter " + strconv.Itoa(int(k))}
}

// counterByName finds counters by their names.
var counterByName = func() map[string]Counter {
	m := make(map[string]Counter)
	for k := range CounterCount {
		m[counterInfos[k].Name] = k
	}
	return m
}()

// CounterValue is the value of a counter. The zero value is an unknown value.
type CounterValue struct {
	N     float64 // in the unit of the counter; above 2^53 the last digits are lost
	Count uint64  // N with all its digits
	Known bool
	Full  bool // N is a lower bound: the counter reached its greatest value, or was reset
	// Wrapped is set if the counter of 64 bits has a value from minWrapped on, which is a
	// difference below zero and no count. N is then the value in PortCounters, if Known.
	Wrapped bool

	wide  bool // a value of 64 bits
	reset bool // it was less than in the earlier reading
}

// Values of 64 bits that are no counts.
const (
	// minWrapped cannot be reached: 2^62 words at 100 GB/s take 5 years.
	minWrapped = 1 << 62
	// noCounter and greater numbers mean that a port lacks the counter.
	noCounter = 1<<64 - 2
)

// MarshalJSON writes a count with all its digits.
func (v CounterValue) MarshalJSON() ([]byte, error) {
	if v.Count > 0 {
		return strconv.AppendUint(nil, v.Count, 10), nil
	}
	return json.Marshal(v.N)
}

// Counters is a reading of the counters of ports.
type Counters struct {
	// By Counter and PortID: short has the values in PortCounters,
	// wide those of 64 bits. A column is nil if no port has a value.
	short, wide [CounterCount][]CounterValue

	// Lines has the state of each port's line by PortID, as
	// ibdiagnet reads it; nil if not known.
	Lines []Line
}

// Line is how well bits and light arrive at a port. The zero value is unknown.
type Line struct {
	SymbolBER float64 // share of symbols that are wrong after FEC; 0 unknown
	Celsius   float64 // temperature of the module of the cable; 0 unknown
	Alarms    int     // kinds of alarms and warnings of the module itself
	Spread    float64 // dB between the lanes with the most and the least light; 0 unknown
}

// Line returns the line of port p of f, for the caller to change.
func (c *Counters) Line(f *fabric.Fabric, p fabric.PortID) *Line {
	if c.Lines == nil {
		c.Lines = make([]Line, f.NumPorts())
	}
	return &c.Lines[p]
}

// Set sets the value of a counter of a port of f. A value of 64 bits and
// one of PortCounters are kept side by side; Get chooses between them.
func (c *Counters) Set(f *fabric.Fabric, k Counter, p fabric.PortID, v CounterValue) {
	column := &c.short[k]
	if v.wide {
		column = &c.wide[k]
	}
	if *column == nil {
		*column = make([]CounterValue, f.NumPorts())
	}
	(*column)[p] = v
}

// Get returns the value of a counter of a port: if both widths are
// known, the greater value, since either may have stopped counting.
func (c *Counters) Get(k Counter, p fabric.PortID) CounterValue {
	return greater(c.both(k, p))
}

// both returns two values of a counter: short from PortCounters, wide of 64
// bits. If wide is Wrapped and short equals the last bits of wide, short
// wrapped with it and becomes unknown.
func (c *Counters) both(k Counter, p fabric.PortID) (short, wide CounterValue) {
	if c.short[k] != nil {
		short = c.short[k][p]
	}
	if c.wide[k] != nil {
		wide = c.wide[k][p]
	}
	if last := k.Value(1<<k.Info().Bits-1, k.Info().Bits).Count; wide.Wrapped && short.Count == wide.Count&last {
		short = CounterValue{}
	}
	return short, wide
}

// greater returns the greater of two values; of equals, one that is a lower bound.
func greater(short, wide CounterValue) CounterValue {
	v := short
	if wide.Known && (!short.Known || wide.N > short.N || wide.N == short.N && !short.Full) {
		v = wide
	}
	v.Wrapped = short.Wrapped || wide.Wrapped
	return v
}

// Has returns true if any counter of port p is known.
func (c *Counters) Has(p fabric.PortID) bool {
	for k := range CounterCount {
		if c.Get(k, p).Known {
			return true
		}
	}
	return false
}

// Counts returns true if counter k may be known for any port.
func (c *Counters) Counts(k Counter) bool { return c.short[k] != nil || c.wide[k] != nil }

// Value converts the raw value of a counter that has the given number of
// bits. With fewer than 64 it is Full at the greatest value; with 64, Wrapped
// from minWrapped on, unknown from noCounter on.
func (k Counter) Value(raw uint64, bits uint8) CounterValue {
	v := CounterValue{Count: raw, wide: bits == 64}
	if k.Info().Words {
		v.Count *= 4
	}
	switch {
	case raw >= noCounter:
		return CounterValue{wide: v.wide}
	case raw >= minWrapped:
		v.Wrapped = true
	default:
		v.N, v.Known, v.Full = float64(v.Count), true, !v.wide && raw >= 1<<bits-1
	}
	return v
}

// The first lines that perfquery prints for a port (perfquery.c). The first names the attribute:
// "Port", "Port extended" for 64 bits, or another one such as PortExtendedSpeedsCounters.
const (
	perfHead     = " counters: "
	perfExtended = "# Port extended"
	perfSelect   = "PortSelect:."
)

// What ibqueryerrors prints (infiniband-diags, ibqueryerrors.c): a line for each
// node, below it a line for each port, and at the end the number of checked nodes.
const (
	errorsFor   = "Errors for "
	dataFor     = "Data Counters for "
	errorsLink  = "Link info:"
	errorsCheck = "## Summary: "
)

// block names counters of a port that are printed together.
type block struct {
	port fabric.PortID
	kind string // the first line of perfquery up to perfHead
}

// perfReader reads what perfquery or ibqueryerrors prints.
type perfReader struct {
	textReader
	f *fabric.Fabric
	c *Counters
	block
	inside bool // the first line of a port has been read
	skip   bool // the first line of this port is wrong
	seen   map[block]bool
	ports  map[fabric.GUID]fabric.PortID // end ports, for ibqueryerrors
}

// ReadCounters reads the counters of ports: what perfquery prints for one port after the
// other, with -x or without it, or what ibqueryerrors prints. name is the file's, for
// messages. If perfquery prints a port in both ways, the greater value of each counter
// counts. In text of ibqueryerrors, a value too great for PortCounters is taken for one of
// 64 bits, and sums of all ports are ignored.
//
// Errors are *fabric.ParseError, and the counters are then nil. With Options.Lenient these
// are Problems instead: LIDs, nodes and ports that the fabric does not have, the sum of
// all ports of a switch (perfquery -a), a second reading of a port, values that are no
// numbers, and foreign lines. Ports that did not answer perfquery are a Missing Problem.
func ReadCounters(name string, data []byte, f *fabric.Fabric, opt Options) (*Counters, []fabric.Problem, error) {
	r := &perfReader{textReader: newTextReader(name, data, opt), f: f, c: &Counters{}, seen: map[block]bool{}, ports: map[fabric.GUID]fabric.PortID{}}
	switch form := Recognize(data); form {
	case PerfQuery:
		r.eachLine(r.readLine)
	case QueryErrors:
		f.EndPorts(func(p fabric.PortID) { r.ports[f.PortGUID(p)] = p })
		r.eachLine(r.readErrors)
	case Cables:
		r.c.readCables(&r.textReader, f)
	default:
		return nil, nil, r.notForm(form, "counters", "what perfquery -x or ibqueryerrors prints")
	}
	return finish(&r.textReader, r.c)
}

func (r *perfReader) readLine(at int, line []byte) error {
	line = bytes.TrimSpace(line)
	switch {
	case beginsWith(line, "# ") && bytes.Contains(line, []byte(perfHead)):
		r.inside = true
		err := r.readHead(string(line))
		r.skip = err != nil
		return err
	case isSilent(line), bytes.HasPrefix(line, libraryWarning):
	case bytes.Contains(line, []byte("iberror: ")):
		r.add(at, fabric.Missing, errors.New("perfquery had no answer here"))
	case !r.inside:
		return fmt.Errorf("text before the first port; want %s%sLid 5 port 1", perfExtended, perfHead)
	case !r.skip:
		return r.readField(string(line))
	}
	return nil
}

// readHead reads the first line of a port: # Port extended counters: Lid 5 port 1 (CapMask:
// 0x5300).
func (r *perfReader) readHead(line string) error {
	kind, rest, _ := strings.Cut(line, perfHead)
	s := topology.Line{Text: []byte(rest)}
	s.Want("Lid ")
	lid := s.Decimal(5)
	s.Want(" port ")
	num := s.Decimal(3)
	if !s.AtWordEnd() {
		return fmt.Errorf("want the first line of a port such as %s%sLid 5 port 1", perfExtended, perfHead)
	}
	owner := fabric.NoPort
	if lid <= int(fabric.MaxUnicastLID) {
		owner = r.f.LIDPort(fabric.LID(lid))
	}
	if owner == fabric.NoPort {
		return fmt.Errorf("no port of the fabric has LID %d", lid)
	}
	n := r.f.Owner(owner)
	node := r.f.Node(n)
	switch {
	case num == 255:
		return fmt.Errorf("this is the sum of all ports of %s; want each port, perfquery -x -l", node.GUID)
	case num > int(node.NumPorts):
		return fmt.Errorf("port %d of node %s, which has ports up to %d", num, node.GUID, node.NumPorts)
	}
	return r.begin(block{r.f.Port(n, fabric.PortNum(num)), kind})
}

// begin starts block b, to which the values that follow belong.
func (r *perfReader) begin(b block) error {
	if r.seen[b] {
		return fmt.Errorf("a second reading of port %s; want a file for each reading", r.f.PortName(b.port))
	}
	r.block, r.seen[b] = b, true
	return nil
}

// readErrors reads a line of ibqueryerrors: GUID 0x100001 port 1: [SymbolErrorCounter ==
// 12] [..]. The GUID is that of the port or of its node. Lines below the heading dataFor
// have data counters.
func (r *perfReader) readErrors(_ int, line []byte) error {
	line = bytes.TrimSpace(line)
	s := topology.Line{Text: line}
	switch {
	case beginsWith(line, errorsFor), beginsWith(line, dataFor):
		r.kind = string(line[:len(errorsFor)])
		return nil
	case isSilent(line), bytes.HasPrefix(line, libraryWarning), beginsWith(line, errorsLink), beginsWith(line, "Failed to reset"):
		return nil
	}
	s.Want("GUID ")
	guid := s.GUID()
	s.Want(" port ")
	if s.Skip("ALL:") {
		return nil
	}
	num := s.Decimal(3)
	s.Want(":")
	if s.Bad {
		return errors.New("want a line such as GUID 0x100001 port 1: [SymbolErrorCounter == 12]")
	}
	n, known := r.f.NodeByGUID(guid)
	if p, there := r.ports[guid]; !known && there {
		n, known = r.f.Owner(p), true
	}
	if !known || num > int(r.f.Node(n).NumPorts) {
		return fmt.Errorf("the fabric has no port %d of %s", num, guid)
	}
	if err := r.begin(block{r.f.Port(n, fabric.PortNum(num)), r.kind}); err != nil {
		return err
	}
	for _, field := range bytes.Split(line, []byte("["))[1:] {
		name, rest, ok := strings.Cut(string(field), " == ")
		k, known := counterByName[name]
		digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		raw, err := strconv.ParseUint(digits, 10, 64)
		bits := k.Info().Bits
		if raw >= 1<<bits || k >= XmitWait && strings.Contains(rest, "(") { // an extended counter
			bits = 64
		}
		switch {
		case !ok || known && err != nil:
			return fmt.Errorf("%s %q, want a number, as in [SymbolErrorCounter == 12]", name, digits)
		case known:
			r.c.Set(r.f, k, r.port, k.Value(raw, bits))
		}
	}
	return nil
}

// readField reads a line such as PortXmitData:....................4372366170488.
func (r *perfReader) readField(line string) error {
	key, value, ok := strings.Cut(line, ":")
	if !ok {
		return errors.New("want a counter such as PortXmitData:....................17")
	}
	k, known := counterByName[strings.Replace(key, "BlockCtr", "BlockCounter", 1)] // libibmad shortens it
	if !known {
		return nil // selectors, and counters that few ports have
	}
	raw, err := strconv.ParseUint(strings.TrimLeft(value, ". "), 0, 64)
	bits := uint8(64)
	if r.kind != perfExtended {
		bits = k.Info().Bits
	}
	if err != nil || bits < 64 && raw >= 1<<bits {
		return fmt.Errorf("%s %q, want a number of up to %d bits", key, strings.TrimLeft(value, "."), bits)
	}
	r.c.Set(r.f, k, r.port, k.Value(raw, bits))
	return nil
}

// Since returns the counts between before, an earlier reading, and c, both of
// f. A counter that is less in c was reset in between: its value in c is a
// lower bound then, and resets is the number of ports with such a counter. If a
// counter in before was at its greatest value, the lower bound is 0. Values
// that only one reading has are left out; Lines are those of c.
func (c *Counters) Since(f *fabric.Fabric, before *Counters) (d *Counters, resets int) {
	d = &Counters{Lines: c.Lines}
	for p := range fabric.PortID(f.NumPorts()) {
		reset := false
		for k := range CounterCount {
			v := c.since(before, k, p)
			reset = reset || v.reset
			if v != (CounterValue{}) {
				d.Set(f, k, p, v)
			}
		}
		if reset {
			resets++
		}
	}
	return d, resets
}

// since returns the difference of a counter: the greater of two if both
// readings have both widths. But a wide counter that is now above the short
// one has not stopped, and is used alone.
func (c *Counters) since(before *Counters, k Counter, p fabric.PortID) CounterValue {
	short, wide := c.both(k, p)
	shortBefore, wideBefore := before.both(k, p)
	v, w := short.since(shortBefore), wide.since(wideBefore)
	switch {
	case w.Known && !w.reset && wide.N > short.N:
		return w
	case !v.Known && !w.Known:
		return c.Get(k, p).since(before.Get(k, p))
	}
	return greater(v, w)
}

// since returns the difference of two values of a counter, unknown if one of them is.
func (v CounterValue) since(before CounterValue) CounterValue {
	d := CounterValue{Known: v.Known && before.Known, Wrapped: v.Wrapped || before.Wrapped}
	switch {
	case !d.Known:
	case v.Count < before.Count && !v.Full:
		d.N, d.Count, d.Full, d.reset = v.N, v.Count, true, true
	case v.Count < before.Count || before.Full:
		d.Full = true
	default:
		d.Count, d.Full = v.Count-before.Count, v.Full
		d.N = float64(d.Count)
	}
	return d
}
