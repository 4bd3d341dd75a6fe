package open

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/subnet"
	"github.com/ibweave/ibweave/sminterface/umad"
	"github.com/ibweave/ibweave/state"
)

// Device says how a live fabric is reached: Umad names a port of this machine, else it is ibsim.
type Device struct {
	Umad   string // DEVICE[:PORT], the GUID of a port, or a network interface; "" for ibsim
	Socket string // of ibsim; "" for that of the environment, else sim
	Node   string // that ibsim attaches us to, by id or description; "" for its first
	subnet.Options
}

// Dial connects to a live fabric, and says to what. A port that this machine does not have is a
// *NoDeviceError.
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

// NoDeviceError is a port that this machine does not have.
type NoDeviceError struct{ error }

func (e *NoDeviceError) Unwrap() error { return e.error }

// LiveOptions are what a caller may ask of Live.
type LiveOptions struct {
	// MaxMLID is the highest MLID to read masks of; 0 for all that a switch has.
	MaxMLID fabric.LID
	// PathSLs asks subnet administration for the SLs of paths where VLs depend on them, and PKeys
	// reads the P_Key tables of end ports.
	PathSLs, PKeys bool
	Host
}

// Swept is a state that was read from a live fabric.
type Swept struct {
	*state.State
	// FewSLs is true if the VL of no packet depends on its SL: path SLs are not asked for then.
	FewSLs bool
	// SLsFailed is why path SLs were not read, though they are wanted.
	SLsFailed error
	Requests  int // datagrams
}

// Live reads the cables of a fabric and the tables of all switches. What did not answer is among the
// Problems of the state, and switches whose tables could not be read are marked Unread. It changes
// nothing. Errors: those of c, and ctx's.
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
	t, err := c.Pull(ctx, d, subnet.PullOptions{MaxMLID: opt.MaxMLID})
	end()
	if err != nil {
		return nil, err
	}
	s := &Swept{Requests: d.Requests + t.Requests, State: &state.State{Name: "live", Fabric: d.Fabric, Manager: fabric.NoPort,
		Tables: t.LFT, SL2VL: t.SL2VL, Problems: slices.Concat(d.Problems, t.Problems)}}
	if t.MFT != nil {
		s.Multicast = &mft.Plan{Tables: t.MFT}
	}
	for i, ok := range t.Read {
		s.MFTCapacity = append(s.MFTCapacity, int(d.Switches[i].MulticastFDBCap))
		s.Unread = append(s.Unread, !ok)
	}
	if s.FewSLs = fewSLs(s.SL2VL); opt.PathSLs {
		end = in.stage("read path SLs")
		err := s.AskPathSLs(ctx, c)
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

// AskPathSLs asks subnet administration for the SLs of the paths, unless VLs do not depend on them.
// The error is ctx's.
func (s *Swept) AskPathSLs(ctx context.Context, c *subnet.Client) error {
	if s.FewSLs = fewSLs(s.SL2VL); s.FewSLs {
		return nil
	}
	sm, err := c.Manager(ctx)
	if err == nil {
		requests := 0
		s.PathSLs, requests, err = c.PathSLs(ctx, sm, s.Fabric)
		s.Requests += requests
	}
	s.SLsFailed = err
	return ctx.Err()
}

// fewSLs returns true if all SLs have the same VL everywhere, and none is dropped.
func fewSLs(m *lft.SL2VL) bool {
	return m.VLs() <= 1 && !slices.ContainsFunc(m.Maps(), func(m lft.VLMap) bool { return slices.Contains(m[:], lft.DropVL) })
}

// Write writes into dir what Path reads: the fabric and all tables. Path SLs of an earlier state go.
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
	list := []file{
		{outdir.TopologyName, func(w io.Writer) error { return topology.Write(w, f) }},
		{outdir.LFTsName, func(w io.Writer) error { return dump.WriteLFTs(w, f, s.Tables, opt) }},
		{outdir.MCFDBsName, func(w io.Writer) error { return dump.WriteMCFDBs(w, s.Multicast.Tables, opt) }},
		{outdir.MFTsName, func(w io.Writer) error {
			return dump.WriteMFTs(w, s.Multicast.Tables, opt, slices.Max(append(s.MFTCapacity, 0)))
		}},
		{outdir.SL2VLName, func(w io.Writer) error { return dump.WriteSL2VL(w, s.SL2VL, opt) }},
		{PKeysName, func(w io.Writer) error { return dump.WritePKeys(w, f, s.PKeys) }},
	}
	if s.PathSLs != nil {
		list = append(list, file{outdir.PathSLsName, func(w io.Writer) error { return dump.WritePathSLs(w, f, s.PathSLs, opt) }})
	} else if err := os.Remove(filepath.Join(dir, outdir.PathSLsName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // those of an earlier pull are of other tables
	}
	for _, file := range list {
		if err := files.Write(filepath.Join(dir, file.name), file.write); err != nil {
			return err
		}
	}
	return nil
}
