package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/rehearse"
)

func (a *app) rehearseCommand() *cobra.Command {
	via := string(rehearse.ViaFile)
	var library, traffic string
	var form cli.OutputForm
	in := newAudit(false, true)
	cmd := &cobra.Command{
		Use:   "rehearse [DIR | -t FILE --lfts FILE]",
		Short: "try tables without hardware: in the real OpenSM, on the real ibsim",
		Args:  a.maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, _, err := a.readOrRoute(cmd.Context(), "rehearse", in, "", args); err != nil {
				return err
			}
			r, err := a.rehearse(cmd.Context(), in, rehearse.Via(via), library, traffic)
			if err != nil {
				return err
			}
			return cmp.Or(form.Print(a.stdout, r, func(b *text.Sheet) { printRehearsal(b, r) }), cli.FindingsIf(!r.Equal()))
		},
	}
	cli.WordFlag(cmd.Flags(), &via, "via", "`HOW` OpenSM gets the tables: file or plugin", string(rehearse.ViaFile), string(rehearse.ViaPlugin))
	cmd.Flags().StringVar(&library, "plugin", "", "`FILE` of the plugin; by default "+rehearse.LibraryName+" beside ibweave or where OpenSM finds it")
	cmd.Flags().StringVar(&traffic, "traffic", "", "the jobs of YAML `FILE` that DIR was compiled for, as the plugin follows them")
	in.fileFlags(cmd.Flags())
	a.nameFlag(cmd)
	form.Define(cmd.Flags(), "output")
	cli.Scopes(cmd.Flags(), cli.Scope{Flags: "plugin traffic", With: "via=plugin"})
	return cmd
}

func (a *app) rehearse(ctx context.Context, in *audit, via rehearse.Via, library, traffic string) (*rehearse.Report, error) {
	routing, err := a.readRouting(in)
	switch {
	case err != nil:
		return nil, err
	case routing.Tables == nil:
		return nil, usagef("rehearse needs forwarding tables: want a directory that has them, or --lfts FILE")
	case in.Compiled == nil && via == rehearse.ViaPlugin:
		return nil, usagef("--via plugin makes the tables again: want a directory that compile wrote")
	}
	f, tables := routing.Fabric, routing.Tables
	if n := len(f.VirtualLIDs()); n > 0 {
		return nil, &rehearse.UnfitError{Reason: fmt.Sprintf("virtual ports have %s of their own, and neither ibsim nor this OpenSM knows virtual ports", text.CountGrouped(n, "LID", "LIDs"))}
	}
	s := a.startStage("")
	defer func() { s.End() }()
	opt := rehearse.Options{Progress: func(name string) {
		s.End()
		s = a.startStage(name)
		a.Log.Info(name)
	}}
	dir := ""
	if in.Compiled != nil {
		dir = in.Compiled.Path
		opt.Dir = dir
	}
	if via == rehearse.ViaFile {
		if dir != "" && strings.HasSuffix(in.LFTs, outdir.ZstdSuffix) {
			return nil, inputf("%s has compressed dumps (compile --zstd), and OpenSM reads none; unpack them first: zstd -d --rm %s",
				dir, filepath.Join(dir, "*"+outdir.ZstdSuffix))
		}
		return rehearseFiles(ctx, in, routing, opt)
	}
	m := in.Compiled.Manifest
	if _, err := compile.EngineByName(m.Engine); err != nil {
		return nil, inputf("%s: %v", filepath.Join(dir, outdir.ManifestName), err)
	}
	if _, partly := m.Options["only"]; partly {
		return nil, inputf("%s has the tables of some switches only (compile --only), and the plugin makes all", dir)
	}
	opt.SL2VL, opt.PathSLs = routing.SL2VL, routing.PathSLs
	plugin := rehearse.PluginOptions{Options: opt, Library: library, Engine: m.Engine}
	if err := a.reader(in).Multicast(); err != nil {
		return nil, err
	}
	if trees := in.State.Multicast; trees != nil {
		plugin.MFT, plugin.Trees = trees.Tables, trees.Trees
		// The plugin needs the scheme of each tree.
		if err := a.readSchemes(in, plugin.Trees); err != nil {
			return nil, err
		}
	}
	jobs, err := a.pluginJobs(in, f, dir, traffic)
	if err != nil {
		return nil, err
	}
	plugin.Config = func(groups string) ([]byte, error) {
		config, err := outdir.PluginConfig(m.Options, groups)
		return append(config, jobs...), err
	}
	return rehearse.RunPlugin(ctx, f, tables, plugin)
}

// rehearseFiles rehearses with OpenSM's file engine, and options that make the SL-to-VL tables.
func rehearseFiles(ctx context.Context, in *audit, routing *lft.Routing, opt rehearse.Options) (r *rehearse.Report, err error) {
	all := &compile.Result{Routing: routing, AnySL: in.Compiled != nil && in.Compiled.Manifest.Options["sl2vl"] == compile.SpreadVLs}
	if in.MFTs != "" {
		all.Plan = &mft.Plan{}
	}
	if opt.OpenSMOptions, err = outdir.QoSOptions(all); err != nil {
		if opt.NotCarried = err.Error(); in.Compiled != nil {
			opt.NotCarried += "; want --via plugin"
		}
	} else {
		opt.SL2VL = routing.SL2VL
	}
	r, err = rehearse.Run(ctx, routing.Fabric, routing.Tables, opt)
	if err == nil && in.FAR != "" {
		r.Notes = append(r.Notes, "the choices of adaptive switches are not carried: OpenSM's file engine loads the static ports alone")
	}
	return r, err
}

// pluginJobs returns lines for the plugin's configuration that name the jobs of --traffic.
func (a *app) pluginJobs(in *audit, f *fabric.Fabric, dir, traffic string) (string, error) {
	file, err := a.readJobFile(traffic) // the plugin would only log an error
	if err != nil {
		return "", err
	}
	options := in.Compiled.Manifest.Options
	forJobs, _ := options["traffic"].(bool)
	switch {
	case forJobs && traffic == "":
		return "", usagef("%s has tables for jobs, and the plugin needs their file: want --traffic FILE", dir)
	case traffic == "":
		return "", nil
	case !forJobs:
		return "", usagef("--traffic: %s was compiled without it", dir)
	}
	if _, err := file.In(f, nil); err != nil {
		return "", usagef("--traffic: the plugin, which has no groups of hosts, cannot use the file: %w", err)
	}
	name, err := filepath.Abs(traffic)
	return fmt.Sprintf("traffic: %q\nuniform-floor: %v\n", name, options["uniform-floor"]), err
}

// readSchemes sets the schemes of trees from groups.json, which has the same groups.
func (a *app) readSchemes(in *audit, trees []mft.Tree) error {
	data, err := a.readInput(in.Groups)
	if err != nil {
		return err
	}
	var entries []mft.Entry
	if err := json.Unmarshal(data, &entries); err != nil || len(entries) != len(trees) {
		return inputf("%s: want a list of %d groups as compile writes it: %v", in.Groups, len(trees), err)
	}
	for i := range trees {
		trees[i].Scheme = entries[i].Scheme
	}
	return nil
}

func printRehearsal(b *text.Sheet, r *rehearse.Report) {
	n := text.Grouped[int]
	up := "subnet up"
	if !r.SubnetUp {
		up = "subnet not up"
	}
	b.Row("OpenSM", "%s, engine %s, %s, %s", r.OpenSM, cmp.Or(r.Engine, "none"), up, text.CountGrouped(r.NumErrors, "error", "errors"))
	b.Row("switches", "%s of %s have our tables", n(r.EqualSwitches), n(r.Switches))
	b.Row("entries", "%s compared, %s", n(r.Entries), text.CountGrouped(r.Differences, "difference", "differences"))
	b.Row("LIDs", "%s with other LIDs than ours", text.CountGrouped(r.WrongLIDs, "port", "ports"))
	if r.Via == rehearse.ViaFile {
		if r.NotCarried != "" {
			b.Row("not carried", "%s", r.NotCarried)
		} else {
			printMaps(b, r.SL2VL)
		}
	} else { // what only the plugin carries
		if m := r.Multicast; m == nil {
			b.Row("multicast", "no groups")
		} else {
			b.Row("multicast", "%s of %s have our masks; %s compared, %s",
				n(m.Equal), text.CountGrouped(m.Groups, "group", "groups"), n(m.Masks), text.CountGrouped(m.Differences, "difference", "differences"))
			b.Row("", "%s joined, %s refused; OpenSM gave %s another MLID than ours",
				text.CountGrouped(m.Members, "member", "members"), n(m.Refused), text.CountGrouped(m.OtherMLIDs, "group", "groups"))
		}
		printMaps(b, r.SL2VL)
		if p := r.PathSLs; p != nil {
			b.Row("path SLs", "%s compared, %s", text.CountGrouped(p.Paths, "path", "paths"), text.CountGrouped(p.Differences, "difference", "differences"))
		}
		b.Row("plugin", "%s", r.Plugin)
	}
	b.Section("Entries that differ", r.Differences, len(r.Samples), func(i int) string { return r.Samples[i].String() })
	b.Section("Ports with other LIDs", r.WrongLIDs, len(r.LIDSamples), func(i int) string { return r.LIDSamples[i].String() })
	if m := r.Multicast; m != nil {
		b.Section("Masks that differ", m.Differences, len(m.Samples), func(i int) string { return m.Samples[i].String() })
		b.Section("Joins that OpenSM refused", m.Refused, len(m.RefusedWhy), func(i int) string { return m.RefusedWhy[i] })
	}
	if v := r.SL2VL; v != nil {
		b.Section("SL-to-VL tables that differ", v.Differences, len(v.Samples), func(i int) string { return v.Samples[i].String() })
	}
	if p := r.PathSLs; p != nil {
		b.Section("Paths with other SLs", p.Differences, len(p.Samples), func(i int) string { return p.Samples[i].String() })
	}
	b.Section("Switches that could not be read", r.Unread, len(r.UnreadSamples), func(i int) string {
		return fmt.Sprintf("%q (%s)", r.UnreadSamples[i].Name.Text, r.UnreadSamples[i].GUID)
	})
	b.Section("OpenSM's errors", r.NumErrors, len(r.Errors), func(i int) string { return r.Errors[i] })
	b.Section("Notes", len(r.Notes), len(r.Notes), func(i int) string { return r.Notes[i] })
	verdict := "equal"
	if !r.Equal() {
		verdict = "different"
	}
	b.WriteByte('\n')
	b.Row("verdict", "%s", verdict)
}

// printMaps prints how SL-to-VL tables compare.
func printMaps(b *text.Sheet, r *rehearse.SL2VLReport) {
	if r == nil {
		b.Row("SL-to-VL", "no tables")
	} else {
		b.Row("SL-to-VL", "%s compared, %s", text.CountGrouped(r.Maps, "table", "tables"), text.CountGrouped(r.Differences, "difference", "differences"))
	}
}
