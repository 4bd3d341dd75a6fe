package open

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/subnet"
	"github.com/ibweave/ibweave/sminterface/umad"
	"github.com/ibweave/ibweave/state"
)

// Device says how to reach a live fabric: Umad names a port of this machine; if it is empty, ibsim is used.
type Device struct {
	Umad   string // DEVICE[:PORT], the GUID of a port, or a network interface; "" for ibsim
	Socket string // of ibsim; "" takes the environment's, or else "sim"
	Node   string // node that we attach to in ibsim, by id or description; "" for its first
	subnet.Options
}

// Dial connects to a live fabric, and returns the name
// of the port or node. If this machine lacks the port,
// the error is a *NoDeviceError.
func Dial(ctx context.Context, d Device) (c *subnet.Client, to string, err error) {
	if d.Umad == "" {
		conn, err := ibsim.Dial(ctx, ibsim.ClientConfig{Socket: d.Socket, Node: d.Node})
		if err != nil {
			return nil, "", err
		}
		return subnet.New(conn, d.Options), conn.Node(), nil
	}
	list, err := umad.List()
	if err != nil {
		return nil, "", err
	}
	info, err := umad.Select(list, d.Umad)
	if err != nil {
		return nil, "", &NoDeviceError{err}
	}
	port, err := umad.Open(info)
	if err != nil {
		return nil, "", err
	}
	return subnet.New(port, d.Options), info.String(), nil
}

// NoDeviceError reports a port that this machine does not have.
type NoDeviceError struct{ error }

func (e *NoDeviceError) Unwrap() error { return e.error }

// LiveOptions are choices for Live.
type LiveOptions struct {
	// MaxMLID and SomeMaps are as in subnet.PullOptions.
	MaxMLID  fabric.LID
	SomeMaps bool
	// PathSLs asks subnet administration for SLs of paths, if VLs depend on them. It asks for a
	// sample: if this has one SL, all paths are taken to have it, else it asks for all. AllPaths
	// asks for the SL of each path in any case. PKeys reads the P_Key tables of end ports.
	PathSLs, AllPaths, PKeys bool
	// Before is called before requests are sent, with their number and receiver; it may be nil.
	Before func(requests int, to string)
	Host
}

// Swept is a state that was read from a live fabric.
type Swept struct {
	*state.State
	// FewSLs is true if no packet's VL depends on its SL; path SLs are then not asked for.
	FewSLs bool
	// SLsFailed is the error of reading the path SLs that were asked for.
	SLsFailed  error
	SampledSLs int // paths whose SLs were asked for, if all SLs are derived from them
	Requests   int // datagrams that were sent
	// Maps is the number of SL-to-VL maps of switches, AskedMaps how many of them were read.
	Maps, AskedMaps int
}

// Live reads the cables of a fabric and the tables of all switches, and
// changes nothing there. Problems list what did not answer; Unread marks
// switches whose tables could not be read. Errors are those of c and of ctx.
func Live(ctx context.Context, c *subnet.Client, opt LiveOptions) (*Swept, error) {
	in := Input{Options: Options{Host: opt.Host}}
	end := in.stage("discover")
	d, err := c.Discover(ctx)
	end()
	if err == nil {
		d.Fabric, err = in.rename(d.Fabric)
	}
	if err != nil {
		return nil, err
	}
	end = in.stage("read tables")
	pull := subnet.PullOptions{MaxMLID: opt.MaxMLID, SomeMaps: opt.SomeMaps}
	if opt.Before != nil {
		opt.Before(d.Estimate(pull), "switches and hosts")
	}
	t, err := c.Pull(ctx, d, pull)
	end()
	if err != nil {
		return nil, err
	}
	s := &Swept{Requests: d.Requests + t.Requests, Maps: t.Maps, AskedMaps: t.AskedMaps, State: &state.State{Name: "live", Fabric: d.Fabric, Manager: fabric.NoPort,
		Tables: t.LFT, SL2VL: t.SL2VL, Problems: slices.Concat(d.Problems, t.Problems)}}
	if t.MFT != nil {
		s.Multicast = &mft.Plan{Tables: t.MFT}
	}
	for i, ok := range t.Read {
		s.MFTCapacity = append(s.MFTCapacity, int(d.Switches[i].MulticastFDBCap))
		s.Unread = append(s.Unread, !ok)
	}
	if s.AskedMaps < s.Maps {
		s.Sampled = map[state.Part]string{state.SL2VLTables: fmt.Sprintf("%s of %s SL-to-VL maps of switches were read; others are taken to be as those of their switch",
			text.Grouped(s.AskedMaps), text.Grouped(s.Maps))}
	}
	if s.FewSLs = HasFewSLs(s.SL2VL); opt.AllPaths || opt.PathSLs && !s.FewSLs {
		end = in.stage("read path SLs")
		err := s.AskPathSLs(ctx, c, opt.AllPaths, opt.Before)
		end()
		if err != nil {
			return nil, err
		}
	}
	if !opt.PKeys {
		return s, nil
	}
	defer in.stage("read P_Key tables")()
	tables, problems, requests, err := c.PKeys(ctx, d)
	s.PKeys, s.Requests, s.Problems = tables, s.Requests+requests, append(s.Problems, problems...)
	return s, err
}

// AskPathSLs asks subnet administration for the SLs of all paths; unless all is set, for a sample
// first, and for no more if that has one SL. before is as in LiveOptions. The error is ctx's.
func (s *Swept) AskPathSLs(ctx context.Context, c *subnet.Client, all bool, before func(requests int, to string)) error {
	sm, err := c.Manager(ctx)
	if err == nil && !all {
		var sl fabric.SL
		var same bool
		if sl, s.SampledSLs, same, err = c.SamplePathSLs(ctx, sm, s.Fabric); err == nil {
			s.Requests += s.SampledSLs
		}
		if same {
			s.PathSLs = lft.NewPathSLs(s.Fabric.NumSwitches(), s.Fabric.MaxLID())
			row := slices.Repeat([]fabric.SL{sl}, int(s.Fabric.MaxLID())+1)
			for _, n := range s.Fabric.Switches() {
				s.PathSLs.SetRow(row, n)
			}
			if s.Sampled == nil {
				s.Sampled = map[state.Part]string{}
			}
			s.Sampled[state.SLsOfPaths] = fmt.Sprintf("%s were asked for, which have SL %d; others are taken to have it", text.CountGrouped(s.SampledSLs, "path SL", "path SLs"), sl)
			return ctx.Err()
		}
		s.SampledSLs = 0
	}
	if err == nil {
		if n := len(s.Fabric.CAPorts()) + s.Fabric.NumSwitches(); before != nil {
			before(n*n, "subnet administration, fewer if its answers are long")
		}
		requests := 0
		s.PathSLs, requests, err = c.PathSLs(ctx, sm, s.Fabric, 1)
		s.Requests += requests
	}
	s.SLsFailed = err
	return ctx.Err()
}

// HasFewSLs returns true if no VL depends on an SL: m has one VL at most and drops no packet.
func HasFewSLs(m *lft.SL2VL) bool {
	return m.VLs() <= 1 && !slices.ContainsFunc(m.Maps(), func(m lft.VLMap) bool { return slices.Contains(m[:], lft.DropVL) })
}

// Write writes the fabric and all tables into dir. Without path SLs it removes old ones.
func (s *Swept) Write(dir string) error {
	f := s.Fabric
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var opt dump.WriteOptions
	type file struct {
		name  string
		write func(io.Writer) error
	}
	sampled := func(p state.Part, write func(io.Writer) error) func(io.Writer) error {
		return func(w io.Writer) (err error) {
			if what := s.Sampled[p]; what != "" {
				_, err = io.WriteString(w, sampledMark+what+"\n")
			}
			return cmp.Or(err, write(w))
		}
	}
	list := []file{
		{outdir.TopologyName, func(w io.Writer) error { return topology.Write(w, f) }},
		{outdir.LFTsName, func(w io.Writer) error { return dump.WriteLFTs(w, f, s.Tables, opt) }},
		{outdir.MCFDBsName, func(w io.Writer) error { return dump.WriteMCFDBs(w, s.Multicast.Tables, opt) }},
		{outdir.MFTsName, func(w io.Writer) error {
			return dump.WriteMFTs(w, s.Multicast.Tables, opt, slices.Max(append(s.MFTCapacity, 0)))
		}},
		{outdir.SL2VLName, sampled(state.SL2VLTables, func(w io.Writer) error { return dump.WriteSL2VL(w, s.SL2VL, opt) })},
		{PKeysName, func(w io.Writer) error { return dump.WritePKeys(w, f, s.PKeys) }},
	}
	if s.PathSLs != nil {
		list = append(list, file{outdir.PathSLsName, sampled(state.SLsOfPaths, func(w io.Writer) error { return dump.WritePathSLs(w, f, s.PathSLs, opt) })})
	} else if err := os.Remove(filepath.Join(dir, outdir.PathSLsName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // path SLs of an earlier pull belong to other tables
	}
	for _, file := range list {
		if err := files.Write(filepath.Join(dir, file.name), file.write); err != nil {
			return err
		}
	}
	return nil
}
