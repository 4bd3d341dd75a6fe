package rehearse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// readBack reads the tables of the simulated switches and compares them.
func (r *run) readBack(sim *ibsim.Sim) error {
	ctx, cancel := context.WithTimeout(r.ctx, r.timeout())
	defer cancel()
	b := &readback{run: r, node: fabric.NoNode, late: make([]fabric.LID, r.f.NumSwitches())}
	text, err := r.printTables(ctx, sim)
	if err == nil {
		err = b.readTables(text)
	}
	if err == nil {
		err = b.readSimulator(ctx, sim)
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if err == nil {
		b.compare()
	}
	return err
}

// printTables has dump_fts read the switches. It prints rows without a path too (-a),
// and does not look up what destinations are (-n). On a machine that has more to
// do than CPUs ibsim may take longer to answer than the second that dump_fts would
// wait (-t).
func (r *run) printTables(ctx context.Context, sim *ibsim.Sim) ([]byte, error) {
	cmd := sim.Command(ctx, "dump_fts", "-a", "-n", "-t", "10000")
	var text bytes.Buffer
	failed := ""
	cmd.Stdout = &text
	cmd.Stderr = &ibsim.LineWriter{Each: func(line []byte) {
		if failed == "" && bytes.Contains(line, []byte("SubnGet(")) {
			failed = string(line)
		}
	}}
	if err := sim.Run(ctx, cmd); err != nil {
		return nil, err
	}
	if failed != "" {
		// It prints the rows of the block before in place of those that it
		// could not read, and is content.
		return nil, fmt.Errorf("dump_fts could not read a table: %s", failed)
	}
	return text.Bytes(), nil
}

// readback holds what has been read of the switches.
type readback struct {
	*run
	got    *lft.Tables   // nil when no switch could be read
	unread []bool        // by switch
	late   []fabric.LID  // by switch: the LID whose entry ibsim's dump is to tell, 0 for none
	node   fabric.NodeID // of the twin, that a line of ibsim's dump is of
	err    error         // of ibsim's dump
}

// readTables reads what dump_fts prints.
func (b *readback) readTables(text []byte) error {
	b.unread = make([]bool, b.f.NumSwitches())
	if len(bytes.TrimSpace(text)) == 0 {
		for s := range b.unread {
			b.unread[s] = true
		}
		return nil
	}
	got, problems, err := dump.ReadLFTs("output of dump_fts", text, b.f, dump.Options{AnyPort: true})
	if err != nil {
		return err
	}
	b.got = got
	for i := range problems {
		var missing *dump.NoTableError
		if errors.As(problems[i].Err, &missing) {
			b.unread[missing.Switch] = true
		}
	}
	return nil
}

// readSimulator reads what ibsim itself says of its nodes (sim_cmd.c): the LIDs that
// the ports have got, and the entries that dump_fts leaves, since it reads one block
// less than it takes where the LinearFDBTop is a multiple of 64.
//
//	Switch 5 "S-0000000000200000"	nodeguid 200000	sysimgguid 200000
//	#	linearcap 49152 FDBtop 64 portchange 0
//	#	Forwarding table 48-64: [48]1 [49]FF ... [64]1
//	200000	[0]	"Sma Port"[0]	 lid 1 lmc 0 smlid 1  4x  2.5G Active/LinkUp
//	200000	[1]	"S-0000000000200008"[3]	  4x 10.0G Active/LinkUp
func (b *readback) readSimulator(ctx context.Context, sim *ibsim.Sim) error {
	if err := sim.Console(ctx, "dump", b.simulatorLine); err != nil {
		return err
	}
	if b.err != nil {
		return b.err
	}
	for s, lid := range b.late {
		if lid != 0 {
			return fmt.Errorf("ibsim's dump has no entry for LID %d of switch %s", lid, b.f.Node(fabric.NodeID(s)).GUID)
		}
	}
	return nil
}

// simulatorLine reads a line of ibsim's dump.
func (b *readback) simulatorLine(line []byte) {
	if b.err == nil && len(line) > 0 && !b.readSimulatorLine(line) {
		b.err = &fabric.ParseError{File: "ibsim's dump", Text: string(line), Err: errors.New("not understood")}
	}
}

func (b *readback) readSimulatorLine(line []byte) bool {
	f := b.twin.Fabric
	var top, capacity fabric.LID
	if n, _ := fmt.Sscanf(string(line), "#\tlinearcap %d FDBtop %d", &capacity, &top); n == 2 && b.node != fabric.NoNode && f.IsSwitch(b.node) {
		if b.got != nil && !b.unread[b.node] && top <= b.got.MaxLID() && top%lft.BlockSize == 0 {
			b.late[b.node] = top
		}
		return true
	}
	if bytes.HasPrefix(line, []byte("#\tForwarding table ")) {
		return b.node != fabric.NoNode && f.IsSwitch(b.node) && b.readEntry(line)
	}
	if line[0] == '#' {
		return true
	}
	if _, rest, found := bytes.Cut(line, []byte("\tnodeguid ")); found {
		digits, _, _ := bytes.Cut(rest, []byte("\t"))
		guid, err := fabric.ParseGUID(string(digits))
		known := false
		if err == nil {
			b.node, known = f.NodeByGUID(guid)
		}
		return known
	}
	return b.node != fabric.NoNode && b.readPort(line)
}

// readEntry looks for the entry that is wanted in a line of a forwarding table.
func (b *readback) readEntry(line []byte) bool {
	lid := b.late[b.node]
	_, rest, found := bytes.Cut(line, fmt.Appendf(nil, " [%d]", lid))
	if lid == 0 || !found {
		return true // not wanted, or in another line
	}
	port, err := strconv.ParseUint(string(rest[:hexDigits(rest)]), 16, 8)
	if err != nil {
		return false
	}
	b.got.Row(b.node)[lid] = fabric.PortNum(port)
	b.late[b.node] = 0
	return true
}

// readPort reads a line of a port, and compares the LID of an end port.
func (b *readback) readPort(line []byte) bool {
	f := b.twin.Fabric
	_, rest, found := bytes.Cut(line, []byte("\t["))
	digits, rest, closed := bytes.Cut(rest, []byte("]"))
	num, err := strconv.ParseUint(string(digits), 10, 8)
	if !found || !closed || err != nil || num > uint64(f.Node(b.node).NumPorts) {
		return false
	}
	p := f.Port(b.node, fabric.PortNum(num))
	if f.PortGUID(p) == 0 || f.LID(p) == 0 || num != 0 && f.Peer(p) == fabric.NoPort {
		return true // no end port, or one without a wanted LID
	}
	_, rest, found = bytes.Cut(rest, []byte(" lid "))
	var lid fabric.LID
	var lmc uint8
	if n, _ := fmt.Sscanf(string(rest), "%d lmc %d", &lid, &lmc); !found || n != 2 {
		return false
	}
	if lid == f.LID(p) && lmc == f.LMC(p) {
		return true
	}
	if b.report.WrongLIDs++; b.report.WrongLIDs <= b.opt.Samples {
		real := b.f.LIDPort(f.LID(p)) // LIDs are the same in the twin
		b.report.LIDSamples = append(b.report.LIDSamples, LIDDifference{Port: b.f.PortName(real), GUID: b.f.PortGUID(real),
			Ours: f.LID(p), LMC: f.LMC(p), OpenSM: lid, OpenSMLMC: lmc})
	}
	return true
}

// compare puts into the report how the tables that were read differ from ours.
func (b *readback) compare() {
	report := b.report
	highest := max(b.f.MaxLID(), b.t.MaxLID())
	if b.got != nil {
		highest = max(highest, b.got.MaxLID())
	}
	for s := range fabric.NodeID(b.f.NumSwitches()) {
		if b.unread[s] {
			if report.Unread++; report.Unread <= b.opt.Samples {
				report.UnreadSamples = append(report.UnreadSamples, nameOf(b.f, s))
			}
			continue
		}
		before := report.Differences
		for l := fabric.LID(1); l <= highest; l++ {
			report.Entries++
			ours, theirs := entry(b.t, s, l), entry(b.got, s, l)
			if ours == theirs {
				continue
			}
			if report.Differences++; report.Differences <= b.opt.Samples {
				report.Samples = append(report.Samples, Difference{Switch: b.f.Node(s).GUID, Name: b.f.Name(s), LID: l, Ours: ours, OpenSM: theirs, Labels: b.f.PortLabels(s)})
			}
		}
		if report.Differences == before {
			report.EqualSwitches++
		}
	}
}

// entry is what a table has for a LID, which may be beyond it.
func entry(t *lft.Tables, s fabric.NodeID, l fabric.LID) fabric.PortNum {
	if l > t.MaxLID() {
		return fabric.NoPath
	}
	return t.Row(s)[l]
}
