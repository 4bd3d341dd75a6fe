package open

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/mft/groupfile"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/state"
)

// All reads every part whose file is named or was found.
func (in *Input) All(ctx context.Context) (*state.State, error) {
	for _, read := range []func() error{in.Tables, in.Lanes, in.Multicast, in.Order, in.PKeyTables} {
		if err := cmp.Or(ctx.Err(), read()); err != nil {
			return nil, err
		}
	}
	return &in.State, nil
}

// Tables reads the fabric, adaptive tables and forwarding tables.
// If there is no file of these, they are those of adaptive PLFT 0.
func (in *Input) Tables() error {
	f, err := in.Fabric()
	if err != nil {
		return err
	}
	if err := in.readAdaptive(f); err != nil {
		return err
	}
	if in.LFTs == "" {
		if in.State.Adaptive != nil {
			in.State.Tables = in.State.Adaptive.PLFTs[0].Ports
		}
		return nil
	}
	t, err := read(in, state.ForwardingTables, in.LFTs, func(name string, text []byte, f *fabric.Fabric, opt dump.Options) (*lft.Tables, []fabric.Problem, error) {
		in.State.LostRows = dump.Recognize(text) == dump.LFTs
		t, problems, err := dump.ReadLFTs(name, text, f, opt)
		return t, slices.DeleteFunc(problems, func(p fabric.Problem) bool { // private tables that were read are no problem
			private, ok := p.Err.(dump.PrivateTablesError)
			return ok && in.State.Adaptive != nil && private.In(in.State.Adaptive)
		}), err
	})
	in.State.Tables = t
	return err
}

// readAdaptive reads the adaptive tables, and the tables that choose a packet's private LFT.
func (in *Input) readAdaptive(f *fabric.Fabric) (err error) {
	if in.FAR == "" {
		return nil
	}
	if in.State.Adaptive, err = read(in, state.AdaptiveTables, in.FAR, dump.ReadFAR); err != nil || in.PLFT == "" {
		return err
	}
	in.State.Adaptive.Select, err = read(in, state.PLFTChoice, in.PLFT, dump.ReadPLFTMap)
	return err
}

// sampledMark begins a dump that was read in part. Behind it is the text for State.Sampled.
const sampledMark = "# sampled: "

// read parses the file of part p for State.Fabric, and records its source and problems.
func read[T any](in *Input, p state.Part, name string,
	parse func(name string, text []byte, f *fabric.Fabric, opt dump.Options) (T, []fabric.Problem, error),
) (t T, err error) {
	text, err := in.ReadFile(name)
	if err != nil {
		return t, err
	}
	if in.TakeLines && name == cmp.Or(in.LFTs, in.FAR) {
		in.State.Lines.Tables, in.State.Lines.Switches = name, tableLines(text)
	}
	defer in.stage("parse " + name)()
	t, problems, err := parse(name, text, in.State.Fabric, dump.Options{Lenient: in.Lenient, AnyPort: in.Findings, GoneMembers: in.Findings})
	if err = cmp.Or(files.CheckUnchanged(name), err); err == nil {
		if rest, ok := bytes.CutPrefix(text, []byte(sampledMark)); ok {
			rest = rest[:min(len(rest), 200)] // a hostile file may have no end of line
			what, _, _ := bytes.Cut(rest, []byte("\n"))
			in.State.Sampled = maps.Clone(in.State.Sampled)
			if in.State.Sampled == nil {
				in.State.Sampled = map[state.Part]string{}
			}
			in.State.Sampled[p] = fabric.Printable(string(bytes.TrimSpace(what)))
		}
		in.source(p, name, text)
		in.tell(in.State.Fabric, problems...)
		in.leave(p, problems)
	}
	return t, err
}

// Lanes reads SL-to-VL tables and path SLs.
func (in *Input) Lanes() (err error) {
	if in.SL2VL != "" {
		if in.State.SL2VL, err = read(in, state.SL2VLTables, in.SL2VL, dump.ReadSL2VL); err != nil {
			return err
		}
	}
	if in.PathSLs != "" {
		in.State.PathSLs, err = read(in, state.SLsOfPaths, in.PathSLs, readPathSLs)
	}
	return err
}

// readPathSLs calls dump.ReadPathSLs, and gives missing SLs the kind MissingEnds:
// the checker finds out itself which rules unknown SLs leave undecided.
func readPathSLs(name string, text []byte, f *fabric.Fabric, opt dump.Options) (*lft.PathSLs, []fabric.Problem, error) {
	sls, problems, err := dump.ReadPathSLs(name, text, f, opt)
	for i := range problems {
		if problems[i].Kind == fabric.Missing {
			problems[i].Kind = fabric.MissingEnds
		}
	}
	return sls, problems, err
}

// Multicast reads multicast tables and groups.
func (in *Input) Multicast() (err error) {
	if in.MFTs == "" {
		return nil
	}
	m := &mft.Plan{}
	if m.Tables, err = read(in, state.MulticastTables, in.MFTs, dump.ReadMFTs); err != nil {
		return err
	}
	in.State.Multicast = m
	if in.Groups == "" {
		return nil
	}
	groups, err := read(in, state.Groups, in.Groups, ReadGroups)
	if err != nil {
		return err
	}
	m.Trees = []mft.Tree{}
	number := make(map[string]int) // by name: first entry of a group, which has one for each MLID
	for i := range groups {
		g := &groups[i]
		if g.MLID == 0 {
			return errorf("%s: group %q has no mlid, so that its masks are unknown; groups.json of a compiled directory has them", in.Groups, g.Name)
		}
		if _, ok := number[g.Name]; !ok {
			number[g.Name] = i
		}
		m.Trees = append(m.Trees, mft.Tree{
			Group: number[g.Name], Name: g.Name, MGID: g.MGID, MLID: g.MLID, Senders: g.Senders, Receivers: g.Receivers, SL: g.SL,
		})
	}
	return nil
}

// ReadGroups reads multicast groups in any form.
func ReadGroups(name string, text []byte, f *fabric.Fabric, opt dump.Options) ([]mft.Group, []fabric.Problem, error) {
	if dump.Recognize(text) == dump.SAQuery {
		return dump.ReadSAQuery(name, text, f, opt)
	}
	groups, err := groupfile.Parse(name, text, f)
	return groups, nil, err
}

// Order reads the rank of each switch, if a directory that compile wrote has ranks.
func (in *Input) Order() error {
	if in.Compiled == nil {
		return nil
	}
	name, listed := in.Compiled.Find(outdir.OrderName)
	if !listed {
		return nil
	}
	data, err := in.Text(name)
	if err != nil {
		return err
	}
	f := in.State.Fabric
	list, err := ReadSwitches(name, data, f)
	if err != nil {
		return err
	}
	rank := slices.Repeat([]int32{-1}, f.NumSwitches())
	for i, s := range list {
		if rank[s] >= 0 {
			return &fabric.ParseError{File: name, Line: i + 1, Err: fmt.Errorf("%s is there twice", f.Node(s).GUID)}
		}
		rank[s] = int32(i)
	}
	if len(list) != len(rank) {
		return errorf("%s has %s, the fabric has %d", name, text.CountGrouped(len(list), "switch", "switches"), len(rank))
	}
	in.State.Order = rank
	return nil
}

// ReadSwitches reads a list of switches of f, one GUID per line; # begins a comment.
func ReadSwitches(name string, data []byte, f *fabric.Fabric) (list []fabric.NodeID, err error) {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		word, _, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), "#")
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		s, err := Switch(f, word)
		if err != nil {
			return nil, &fabric.ParseError{File: name, Line: number, Text: word, Err: err}
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, errorf("%s has no GUID", name)
	}
	return list, nil
}

// Switch finds a switch by its GUID.
func Switch(f *fabric.Fabric, word string) (fabric.NodeID, error) {
	g, err := fabric.ParseGUID(word)
	if err != nil {
		return 0, err
	}
	s, ok := f.SwitchByGUID(g)
	if !ok {
		return 0, fmt.Errorf("the fabric has no switch with GUID %s", g)
	}
	return s, nil
}

// PKeyTables reads the P_Key tables of the named file, which replace those of a db_csv.
func (in *Input) PKeyTables() (err error) {
	if in.PKeys != "" {
		in.State.PKeys, err = read(in, state.PKeyTables, in.PKeys, dump.ReadPKeys)
	}
	return err
}
