package rehearse

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// readBack reads the tables of the simulated switches and compares them.
func (r *run) readBack(sim *ibsim.Sim) error {
	ctx, cancel := context.WithTimeout(r.ctx, r.timeout())
	defer cancel()
	c := newComparison(r.f, r.t, r.opt.Samples)
	if err := r.readSwitches(ctx, sim, c); err != nil {
		return err
	}
	if err := r.readSimulator(ctx, sim, c); err != nil {
		return err
	}
	c.finish(r.report)
	return nil
}

// readSwitches reads the tables by dump_fts. It prints rows without a path
// too (-a), and does not look up what destinations are (-n). On a machine that
// has more to do than CPUs ibsim may take longer to answer than the second that
// dump_fts would wait (-t).
func (r *run) readSwitches(ctx context.Context, sim *ibsim.Sim, c *comparison) error {
	cmd := sim.Command(ctx, "dump_fts", "-a", "-n", "-t", "10000")
	var said complaints
	cmd.Stderr = &said
	in, out := io.Pipe()
	cmd.Stdout = out
	read := make(chan error, 1)
	go func() {
		err := c.readTables(ctx, in)
		// dump_fts must not wait for a reader that has given up.
		in.CloseWithError(err)
		read <- err
	}()
	err := sim.Run(ctx, cmd)
	out.Close()
	parseErr := <-read
	switch {
	case r.ctx.Err() != nil:
		return context.Cause(r.ctx)
	case parseErr != nil:
		return parseErr
	case err != nil:
		return err
	case said.first != "":
		// It prints the rows of the block before in place of those that it
		// could not read, and is content.
		return fmt.Errorf("dump_fts could not read a table: %s", said.first)
	}
	return nil
}

// complaints keeps the first line that says that an SMP has failed.
type complaints struct {
	partial []byte
	first   string
}

var failedGet = []byte("SubnGet(")

func (c *complaints) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 && c.first == "" {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			c.partial = append(c.partial, b...)
			break
		}
		line := append(c.partial, b[:i]...)
		if bytes.Contains(line, failedGet) {
			c.first = string(line)
		}
		c.partial = c.partial[:0]
		b = b[i+1:]
	}
	return n, nil
}

// comparison holds what has been read of the switches.
type comparison struct {
	f       *fabric.Fabric
	want    *lft.Tables
	highest int // LID: that of the fabric and of the tables
	samples int

	read    []bool       // by switch
	differ  []int        // by switch: entries
	list    []Difference // of each switch the first samples, in the order they were read
	late    []int        // by switch: the LID that is still to be read, 0 for none
	wrong   int
	lids    []LIDDifference
	entries int

	// The section being read.
	sw   fabric.NodeID    // NoNode before the first
	got  []fabric.PortNum // by LID
	top  int
	rows int // -1 between sections
}

func newComparison(f *fabric.Fabric, want *lft.Tables, samples int) *comparison {
	n := f.NumSwitches()
	return &comparison{
		f: f, want: want, highest: max(int(f.MaxLID()), int(want.MaxLID())), samples: samples,
		read: make([]bool, n), differ: make([]int, n), late: make([]int, n),
		sw: fabric.NoNode, got: make([]fabric.PortNum, int(fabric.MaxUnicastLID)+1), rows: -1,
	}
}

// ours is the entry that switch s was meant to have.
func (c *comparison) ours(s fabric.NodeID, lid int) fabric.PortNum {
	if lid > int(c.want.MaxLID()) {
		return fabric.NoPath
	}
	return c.want.Row(s)[lid]
}

// readTables reads what dump_fts -a -n prints (dump_fts.c): for each switch
//
//	Unicast lids [0x0-0x20] of switch DR path slid 0; dlid 0; 0,1 guid 0x000000000020000f (name):
//	  Lid  Out   Destination
//	       Port     Info
//	0x0000 255
//	...
//	33 lids dumped
//
// with a row for every LID of the range, which ends at the switch's
// LinearFDBTop. When that is a multiple of 64, the last row is missing.
// ReadLFTs of package dump reads this as well, but it would take all of the
// text into memory, which has 12 bytes for every entry, and would not tell a
// row that is missing from one without a path.
func (c *comparison) readTables(ctx context.Context, r io.Reader) error {
	number := 0
	err := eachLine(ctx, r, func(line []byte) error {
		number++
		if err := c.tableLine(bytes.TrimRight(line, " \n")); err != nil {
			return &fabric.ParseError{File: "output of dump_fts", Line: number, Text: string(bytes.TrimRight(line, "\n")), Err: err}
		}
		return nil
	})
	if err == nil && c.rows >= 0 {
		err = fmt.Errorf("dump_fts stopped in the table of switch %s", c.f.Node(c.sw).GUID)
	}
	return err
}

var (
	tableHead = []byte("Unicast lids [0x0-0x")
	tableTail = []byte(" lids dumped")
	headGUID  = []byte(" guid 0x")
)

func (c *comparison) tableLine(line []byte) error {
	switch {
	case len(line) == len("0x0000 000") && line[0] == '0' && c.rows >= 0:
		return c.row(line)
	case bytes.HasPrefix(line, tableHead):
		return c.head(line)
	case bytes.HasSuffix(line, tableTail) && c.rows >= 0:
		n, err := strconv.Atoi(string(line[:len(line)-len(tableTail)]))
		if err != nil || n != c.rows {
			return fmt.Errorf("%d rows were printed", c.rows)
		}
		return c.endTable()
	case c.rows > 0:
		return errors.New("want a row, as in 0x0001 003")
	case len(line) == 0, bytes.HasPrefix(line, []byte("  Lid")), bytes.HasPrefix(line, []byte("       Port")):
		return nil
	}
	return errors.New("want the table of a switch")
}

func (c *comparison) head(line []byte) error {
	if c.rows >= 0 {
		return fmt.Errorf("the table of switch %s has no end", c.f.Node(c.sw).GUID)
	}
	rest := line[len(tableHead):]
	n := hexDigits(rest)
	top, err := strconv.ParseUint(string(rest[:n]), 16, 16)
	if err != nil || top > uint64(fabric.MaxUnicastLID) {
		return fmt.Errorf("highest LID %s, want at most %#x", rest[:n], fabric.MaxUnicastLID)
	}
	at := bytes.Index(rest, headGUID)
	if at < 0 {
		return errors.New("no guid 0x...")
	}
	digits := rest[at+len(headGUID):]
	guid, err := fabric.ParseGUID(string(digits[:hexDigits(digits)]))
	if err != nil {
		return err
	}
	sw, ok := c.f.SwitchByGUID(guid)
	if !ok {
		return fmt.Errorf("the fabric has no switch %s", guid)
	}
	if c.read[sw] {
		return fmt.Errorf("switch %s comes twice", guid)
	}
	c.sw, c.top, c.rows = sw, int(top), 0
	for i := range c.got {
		c.got[i] = fabric.NoPath
	}
	return nil
}

// row reads 0x001f 003.
func (c *comparison) row(line []byte) error {
	lid, err := strconv.ParseUint(string(line[2:6]), 16, 16)
	if err != nil || int(lid) != c.rows || int(lid) > c.top {
		return fmt.Errorf("want the row of LID %#04x", c.rows)
	}
	port, err := strconv.ParseUint(string(line[7:]), 10, 8)
	if err != nil {
		return errors.New("want a port from 000 to 255")
	}
	c.got[lid] = fabric.PortNum(port)
	c.rows++
	return nil
}

// endTable compares the table that has been read.
func (c *comparison) endTable() error {
	last := c.top
	if c.rows == c.top && c.top%lft.BlockSize == 0 && c.top > 0 {
		// dump_fts reads one block less than it takes.
		c.late[c.sw] = c.top
		last--
	}
	if c.rows != last+1 && c.top > 0 {
		return fmt.Errorf("want %d rows", c.top+1)
	}
	for lid := 1; lid <= max(c.highest, last); lid++ {
		if lid != c.late[c.sw] {
			c.entry(c.sw, lid, c.got[lid])
		}
	}
	c.read[c.sw] = true
	c.rows = -1
	return nil
}

// entry compares an entry.
func (c *comparison) entry(s fabric.NodeID, lid int, got fabric.PortNum) {
	c.entries++
	ours := c.ours(s, lid)
	if ours == got {
		return
	}
	if c.differ[s]++; c.differ[s] <= c.samples {
		c.list = append(c.list, Difference{Switch: c.f.Node(s).GUID, Name: c.f.Name(s), LID: fabric.LID(lid), Ours: ours, OpenSM: got})
	}
}

// readSimulator reads what ibsim itself says of its nodes: the LIDs that the
// ports have got, and the entries that dump_fts has left.
func (r *run) readSimulator(ctx context.Context, sim *ibsim.Sim, c *comparison) error {
	d := simulatorDump{twin: r.twin, c: c, node: fabric.NoNode}
	if err := sim.ConsoleLines(ctx, "dump", d.line); err != nil {
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		return err
	}
	if d.err != nil {
		return d.err
	}
	for s, lid := range c.late {
		if lid != 0 {
			return fmt.Errorf("ibsim's dump has no entry for LID %d of switch %s", lid, c.f.Node(fabric.NodeID(s)).GUID)
		}
	}
	return nil
}

// simulatorDump reads ibsim's dump (sim_cmd.c):
//
//	Switch 5 "S-0000000000200000"	nodeguid 200000	sysimgguid 200000
//	#	linearcap 49152 FDBtop 64 portchange 0
//	#	Forwarding table 48-64: [48]1 [49]FF ... [64]1
//	200000	[0]	"Sma Port"[0]	 lid 1 lmc 0 smlid 1  4x  2.5G Active/LinkUp
//	200000	[1]	"S-0000000000200008"[3]	  4x 10.0G Active/LinkUp
type simulatorDump struct {
	twin *ibsim.Twin
	c    *comparison
	node fabric.NodeID // of the twin
	err  error
}

var (
	dumpNode  = []byte("\tnodeguid ")
	dumpTable = []byte("#\tForwarding table ")
	dumpLID   = []byte(" lid ")
	dumpLMC   = []byte(" lmc ")
)

func (d *simulatorDump) line(line []byte) {
	if d.err == nil && len(line) > 0 && !d.take(line) {
		d.err = &fabric.ParseError{File: "ibsim's dump", Text: string(line), Err: errors.New("not understood")}
	}
}

func (d *simulatorDump) take(line []byte) bool {
	f := d.twin.Fabric
	switch {
	case bytes.HasPrefix(line, dumpTable):
		if d.node == fabric.NoNode || !f.IsSwitch(d.node) {
			return false
		}
		if late := d.c.late[d.node]; late != 0 {
			return d.entry(line, late)
		}
		return true
	case line[0] == '#':
		return true
	case bytes.Contains(line, dumpNode):
		_, rest, _ := bytes.Cut(line, dumpNode)
		guid, err := fabric.ParseGUID(string(rest[:hexDigits(rest)]))
		if err != nil {
			return false
		}
		var ok bool
		d.node, ok = f.NodeByGUID(guid)
		return ok
	case d.node != fabric.NoNode:
		_, rest, found := bytes.Cut(line, []byte("\t["))
		end := bytes.IndexByte(rest, ']')
		if !found || end < 0 {
			return false
		}
		num, err := strconv.ParseUint(string(rest[:end]), 10, 8)
		if err != nil || num > uint64(f.Node(d.node).NumPorts) {
			return false
		}
		return d.port(f.Port(d.node, fabric.PortNum(num)), rest[end:])
	}
	return false
}

// entry looks for the entry of a LID in a line of a forwarding table.
func (d *simulatorDump) entry(line []byte, lid int) bool {
	mark := strconv.AppendInt([]byte(" ["), int64(lid), 10)
	_, rest, found := bytes.Cut(line, append(mark, ']'))
	if !found {
		return true // in another line
	}
	port, err := strconv.ParseUint(string(rest[:hexDigits(rest)]), 16, 8)
	if err != nil {
		return false
	}
	d.c.entry(d.node, lid, fabric.PortNum(port))
	d.c.late[d.node] = 0
	return true
}

// port compares the LID of an end port.
func (d *simulatorDump) port(p fabric.PortID, line []byte) bool {
	f := d.twin.Fabric
	if f.PortGUID(p) == 0 || f.LID(p) == 0 || f.Num(p) != 0 && f.Peer(p) == fabric.NoPort {
		return true // no end port, or nobody said which LID it was to have
	}
	_, rest, found := bytes.Cut(line, dumpLID)
	if !found {
		return false
	}
	text, rest, found := bytes.Cut(rest, dumpLMC)
	lid, err1 := strconv.ParseUint(string(text), 10, 16)
	text, _, _ = bytes.Cut(rest, []byte{' '})
	lmc, err2 := strconv.ParseUint(string(text), 10, 8)
	if !found || err1 != nil || err2 != nil {
		return false
	}
	if got := fabric.LID(lid); got != f.LID(p) || uint8(lmc) != f.LMC(p) {
		c := d.c
		if c.wrong++; c.wrong <= c.samples {
			real := c.f.LIDPort(f.LID(p)) // LIDs are the same in the twin
			c.lids = append(c.lids, LIDDifference{Port: c.f.PortName(real), GUID: c.f.PortGUID(real),
				Ours: f.LID(p), LMC: f.LMC(p), OpenSM: got, OpenSMLMC: uint8(lmc)})
		}
	}
	return true
}

// finish puts what has been found into a report.
func (c *comparison) finish(report *Report) {
	report.Entries = c.entries
	for s := range fabric.NodeID(c.f.NumSwitches()) {
		switch {
		case !c.read[s]:
			if report.Unread++; report.Unread <= c.samples {
				report.UnreadSamples = append(report.UnreadSamples, nameOf(c.f, s))
			}
		case c.differ[s] == 0:
			report.EqualSwitches++
		default:
			report.Differences += c.differ[s]
		}
	}
	// dump_fts begins where it is attached, and what it left came last.
	slices.SortFunc(c.list, func(a, b Difference) int {
		return cmp.Or(a.Switch.Compare(b.Switch), cmp.Compare(a.LID, b.LID))
	})
	report.Samples = append(report.Samples, c.list[:min(len(c.list), c.samples)]...)
	report.WrongLIDs = c.wrong
	report.LIDSamples = append(report.LIDSamples, c.lids...)
}
