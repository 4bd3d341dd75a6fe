package ibdiagnet

import (
	"io"
	"math"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// counterSection has the counters of all ports.
const counterSection = "PM_INFO"

// Reading has the counters of a database.
type Reading struct {
	*dump.Counters
	Date     string           // of the run; "" when it is not there
	Problems []fabric.Problem // sorted by line
}

// counterDraft is a reading that is being made.
type counterDraft struct {
	f    *fabric.Fabric
	made *dump.Counters
	seen []int // by PortID: the line of its row, 0 for none
}

// ReadCounters reads the counters of the ports of f from section PM_INFO of a
// db_csv, and the data of dump.Line from PHY_DB16 and CABLE_INFO. The rest takes
// no memory. If a counter is there in 64 bits and as in PortCounters, the greater
// value counts. f may be from another source. name is for messages.
//
// Errors are as those of Read: no section PM_INFO, nodes and ports that f does not have, a
// second row of a port, and numbers that are invalid or have too many bits. With Options.Lenient
// all but the first are Problems. Unreadable rows of the other sections are always Problems.
func ReadCounters(name string, from io.Reader, f *fabric.Fabric, opt Options) (*Reading, error) {
	d := newDraft(name, opt)
	d.counters = &counterDraft{f, &dump.Counters{}, make([]int, f.NumPorts())}
	if err := d.readText(from); err != nil {
		return nil, err
	}
	if _, there := d.lines[counterSection]; !there {
		return nil, parseError(name, 0, nil, "no section %s; want a run of ibdiagnet without --skip pm", counterSection)
	}
	d.sortProblems()
	return &Reading{d.counters.made, d.date, d.problems}, nil
}

// portOf returns the port of a row. It refuses the row if the fabric lacks the port.
func (d *draft) portOf(r *row) (p fabric.PortID, ok bool) {
	at, f := r.port(), d.counters.f
	n, known := f.NodeByGUID(at.node)
	if r.err == nil && (!known || at.num > f.Node(n).NumPorts) {
		r.refuse("the fabric has no port %s", at)
	}
	if r.err != nil {
		return fabric.NoPort, false
	}
	return f.Port(n, at.num), true
}

// readCounters reads the counters of a port.
func (d *draft) readCounters(r *row) {
	p, ok := d.portOf(r)
	if !ok {
		return
	}
	c := d.counters
	if c.seen[p] > 0 {
		r.refuse("port %s has a row in line %d, too", r.port(), c.seen[p])
		return
	}
	c.seen[p] = r.line
	for k := range dump.CounterCount {
		for i, bits := range []uint8{64, k.Info().Bits} {
			cell, most := 2+2*int(k)+i, uint64(1)<<bits-1
			if k == dump.FECUncorrectable { // may have more bits than perfquery reads
				most = math.MaxUint64
			}
			raw := r.number(cell, most)
			if raw > 1<<bits-1 {
				bits = 64
			}
			if v := k.Value(raw, bits); r.err == nil && r.cell(cell) != "" {
				c.made.Set(c.f, k, p, v)
			}
		}
	}
}

// mostPower is the greatest power of ten in a BER; ports without a BER have any number there.
const mostPower = 1000

// readBER reads the BER of symbols of a port.
func (d *draft) readBER(r *row) {
	p, ok := d.portOf(r)
	number, power := r.number(2, math.MaxUint32), r.number(3, math.MaxUint32)
	if ok && r.err == nil && number > 0 && power <= mostPower {
		d.counters.made.Line(d.counters.f, p).SymbolBER = float64(number) * math.Pow10(-int(power))
	}
}

// readModule reads the temperature of a cable's module, and
// counts its alarms: one for each cell that is not all zeros.
func (d *draft) readModule(r *row) {
	p, ok := d.portOf(r)
	if !ok {
		return
	}
	line := d.counters.made.Line(d.counters.f, p)
	line.Celsius, _ = dump.ParseAmount(r.cell(2))
	for i := 3; i < len(r.place); i++ {
		if strings.Trim(r.cell(i), " 0x,") != "" {
			line.Alarms++
		}
	}
}
