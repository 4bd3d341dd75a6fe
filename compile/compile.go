// Package compile is the pipeline from a fabric to verified tables: it assigns LIDs, runs an
// engine and multicast schemes, and verifies what they made. It opens no files; package outdir
// writes the result for OpenSM. It is part of the supported Go API.
package compile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/verify"
)

// Options are the settings of Run.
type Options struct {
	LIDs  lft.LIDOptions
	Route lft.Options
	// MaxDetour, if not nil, is how many switches more than a shortest path any path between CA
	// and router ports may pass. If nil, engines take the detours that their guarantee needs.
	MaxDetour *int
	// Demand, if not nil, returns the hosts' traffic, nil for none, in a fabric whose
	// ports have their LIDs. Tables are fitted to it as far as the engine leaves a choice
	// of ports.
	Demand func(context.Context, *fabric.Fabric) (*lft.Demand, error)
	// UniformFloor is the factor by which a fit to Demand may raise the greatest load of
	// uniform traffic, one route from each host to each LID. 0 means lft.DefaultUniformFloor.
	UniformFloor float64
	// SL2VL is the scheme of SL-to-VL tables, one of SL2VLSchemes. "" takes the scheme that the
	// engine needs, else identity if Route.VLs is more than 1, else one VL for all traffic.
	SL2VL string
	// Groups, if not nil, returns the multicast groups of a fabric whose ports have their
	// LIDs.
	Groups func(*fabric.Fabric) ([]mft.Group, error)
	// Multicast is the name of a scheme, one of MulticastSchemes; "" chooses one for each group
	// by the engine and the group's senders.
	Multicast string
	// Scheme, if not nil, is the caller's own multicast scheme and replaces Multicast. Groups
	// that it refuses get no other scheme.
	Scheme mft.Scheme
	MFT    mft.Options
	// Kept, if not nil, saves time if Route.Previous has the tables of the last Run with this
	// Kept.
	Kept *Kept
	// Unverified leaves out multicast and the check, and Result.Verify is nil: such tables only
	// serve as Previous of others.
	Unverified bool
	// Stage, if not nil, is called when a stage begins: "route", "multicast", "verify".
	Stage func(name string)
	// Progress, if not nil, is called from several goroutines with the part of the
	// verification that is done.
	Progress func(done, total int)
}

// Seconds is how long each stage took.
type Seconds struct {
	Read      float64 `json:"read"`
	Route     float64 `json:"route"` // LIDs included
	Multicast float64 `json:"multicast"`
	Verify    float64 `json:"verify"`
	Write     float64 `json:"write"`
}

// Result has a routing, its multicast plan and the verdict.
type Result struct {
	Engine  *Engine
	Routing *lft.Routing
	// Groups are the multicast groups, Plan their trees and Cost the cost of Plan; nil without
	// groups.
	Groups []mft.Group
	Plan   *mft.Plan
	Cost   *mft.Cost
	// Fit is nil without a demand.
	Fit *Fit
	// Adaptive is nil without AddChoices.
	Adaptive *Adaptive
	// Verify is the checker's verdict. A fault that the engine does not promise to avoid, such
	// as a credit loop of minhop, is a warning in it.
	Verify  *verify.Result
	Seconds Seconds
	// AnySL is true if the proof holds whatever SLs paths have: Routing.PathSLs then only
	// spreads paths over VLs, for the scheme SpreadVLs.
	AnySL bool
}

// LIDError wraps the reason why LIDs cannot be assigned as wanted.
type LIDError struct{ Err error }

func (e *LIDError) Error() string { return "LIDs: " + e.Err.Error() }

// Unwrap gives the cause.
func (e *LIDError) Unwrap() error { return e.Err }

// Run assigns LIDs, routes, makes multicast trees and verifies. Errors: a *LIDError, with a
// *mesh.NotGridError inside if LIDs by mesh coordinates find no mesh; a *lft.DomainError of the
// engine or for paths longer than Options.MaxDetour; a *GroupError; those of Options.Groups and
// Options.Demand; ctx's. Findings about tables are no error: see Result.Verify. With
// lft.KeepLIDs, LIDs of virtual ports get the entries of the ports that they are on; other
// policies drop these LIDs.
func Run(ctx context.Context, f *fabric.Fabric, e *Engine, opt Options) (*Result, error) {
	r, err := run(ctx, f, e, opt)
	if err == nil && opt.SL2VL == SpreadVLs && opt.Route.VLs > 1 {
		r.AnySL = true
		r.Routing.PathSLs = lft.SpreadPathSLs(r.Routing.Fabric, r.Routing.Tables.MaxLID(), opt.Route.VLs)
	}
	return r, err
}

// run is Run without the step that spreads paths over VLs by their SLs.
func run(ctx context.Context, f *fabric.Fabric, e *Engine, opt Options) (*Result, error) {
	r := &Result{Engine: e}
	if opt.Scheme != nil {
		opt.Multicast = opt.Scheme.Name()
	}
	stage := func(name string, seconds *float64, run func() error) error {
		if opt.Stage != nil {
			opt.Stage(name)
		}
		start := time.Now()
		err := run()
		*seconds += time.Since(start).Seconds()
		return err
	}
	err := stage("route", &r.Seconds.Route, func() error {
		g, err := assignLIDs(f, &opt)
		if err != nil {
			return &LIDError{err}
		}
		var hosts [][]fabric.PortID
		listHosts := func() error { hosts = lft.HostPorts(g); return nil }
		if opt.Route.Previous == nil { // kept tables are not changed for hosts
			listHosts = par.Go(listHosts)      // while the engine orders switches on one CPU
			defer func() { _ = listHosts() }() // waits if the engine fails
		}
		if r.Routing, err = e.Route(ctx, g, opt.routeOptions()); err != nil {
			return err
		}
		if !r.Routing.Kept {
			if err := listHosts(); err != nil {
				return err
			}
			if err := r.Routing.SeparateHosts(ctx, hosts); err != nil {
				return err
			}
		}
		if err := r.fit(ctx, &opt); err != nil {
			return err
		}
		if opt.LIDs.Policy == lft.KeepLIDs {
			if err := r.Routing.AddVirtualLIDs(f.VirtualLIDs()); err != nil {
				return &LIDError{err}
			}
		}
		return addLanes(e, r.Routing, &opt)
	})
	if err != nil {
		return nil, err
	}
	if opt.Unverified {
		return r, nil
	}
	var m *multicaster
	if opt.Groups != nil {
		m = newMulticaster(r.Routing, &opt)
		err = stage("multicast", &r.Seconds.Multicast, func() error { return r.multicast(ctx, m, &opt) })
		if err != nil {
			return nil, err
		}
	}
	for {
		err = stage("verify", &r.Seconds.Verify, func() error {
			var err error
			r.Verify, err = opt.Kept.check(ctx, r, opt.Progress)
			return err
		})
		if err != nil {
			return nil, err
		}
		if err := r.checkDetours(opt.MaxDetour); err != nil {
			return nil, err
		}
		r.regrade(opt.Multicast)
		if m == nil || opt.Multicast != "" {
			return r, nil
		}
		again := false
		err = stage("multicast", &r.Seconds.Multicast, func() (err error) {
			if again, err = m.stepDown(r); err != nil {
				return &GroupError{err}
			} else if again {
				err = r.multicast(ctx, m, &opt)
			}
			return err
		})
		var refused *GroupError
		switch {
		case errors.As(err, &refused) && r.unicastErrors():
			// The unicast errors have to be mended first.
			r.Plan.Notes = append(r.Plan.Notes, refused.Err.Error())
			return r, nil
		case err != nil:
			return nil, err
		case !again:
			return r, nil
		}
	}
}

// checkDetours returns an error if a path passes more switches than allowed.
func (r *Result) checkDetours(allowed *int) error {
	u := &r.Verify.Unicast
	if allowed == nil || u.MaxDetour <= *allowed {
		return nil
	}
	return &lft.DomainError{Engine: r.Engine.Name(), Reason: fmt.Sprintf("%s of %s pass up to %s more than a shortest path, and %d more are allowed",
		text.Grouped(u.NonMinimal), text.CountGrouped(u.Pairs, "pair", "pairs"), text.Count(u.MaxDetour, "switch", "switches"), *allowed)}
}

// unicastErrors returns true if there are errors that a change of multicast scheme cannot mend.
func (r *Result) unicastErrors() bool {
	return slices.ContainsFunc(r.Verify.Findings, func(f verify.Finding) bool {
		return f.Severity == verify.Error && !strings.HasPrefix(f.Rule, "multicast")
	})
}

// regrade turns errors into warnings if the engine or the scheme does not promise to avoid
// them.
func (r *Result) regrade(scheme string) {
	if !r.Engine.Guarantee().Has(lft.NoCreditLoop) {
		r.Verify.Regrade(verify.CreditLoop, verify.Warning)
		r.Verify.Regrade(verify.MulticastCreditLoop, verify.Warning)
	}
	if scheme == openSMScheme { // promises nothing
		r.Verify.Regrade(verify.MulticastCreditLoop, verify.Warning)
	}
}

// assignLIDs assigns LIDs by opt.LIDs. For LIDs by mesh coordinates it finds the mesh first.
func assignLIDs(f *fabric.Fabric, opt *Options) (*fabric.Fabric, error) {
	lids := opt.LIDs
	if lids.Policy == lft.MeshLIDs {
		g, err := mesh.Detect(f, mesh.DetectOptions{Origin: opt.Route.Origin, Dims: opt.Route.Dims})
		if err != nil {
			return nil, err
		}
		lids.MeshBases = g.LIDs
	}
	return lft.AssignLIDs(f, lids)
}
