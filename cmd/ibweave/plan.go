package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/audit/cabling/plan"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// planCommand writes a cabling plan.
func (a *app) planCommand() *cobra.Command {
	var in audit
	var output string
	forms := each(plan.Forms, func(f plan.Form) string { return string(f) })
	form := forms[0]
	cmd := &cobra.Command{
		Use:   "plan DIR|FILE",
		Short: "write a cabling plan from a fabric",
		Long: `Write the cables of a fabric as a plan, which check --plan holds a fabric to. FILE is a
topology in any form; DIR is what compile wrote or a folder of dumps as check takes it.

--format ndt is UFM's network definition table: StartDevice, StartPort, EndDevice,
EndPort. Ports of a director are "Blade 16_Port 2/20": leaf card 16, chip 2, port 20.
csv has the same four columns without the fifth, topo is the form of ibutils. Cables
inside a chassis and those to aggregation nodes are left out. A node whose name is not
its own, or cannot be written in the form, stands there by its GUID.`,
		Example: `  ibweave plan fabric.txt -o plan.ndt
  ibweave check -t today.txt --plan plan.ndt
  ibweave plan tables --format topo`,
		Args: a.maxArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("plan needs a topology: DIR or FILE")
			}
			return a.writePlan(&in, args[0], plan.Form(form), output)
		},
	}
	wordFlag(cmd.Flags(), &form, "format", "`FORM` of the plan: ndt, csv or topo", forms...)
	cmd.Flags().StringVarP(&output, "output", "o", "-", "`FILE` to write; - is standard output")
	lenientFlag(cmd.Flags(), &in.lenient)
	a.nameFlag(cmd)
	a.kindFlag(cmd)
	return cmd
}

// writePlan writes the plan of a fabric.
func (a *app) writePlan(in *audit, from string, form plan.Form, output string) error {
	in.topology = from
	if info, err := os.Stat(from); from != "-" && err == nil && info.IsDir() {
		in.topology = ""
		if err := a.resolve(in, from, false); err != nil {
			return err
		}
	}
	in.lfts = ""
	f, _, err := a.readTables(in)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := plan.Write(&b, f, form); err != nil {
		return err
	}
	return a.writeOutput(output, b.Bytes())
}

// expectPlan reads plans, and says in opt what they mean of f.
func (a *app) expectPlan(in *audit, names []string, f *fabric.Fabric, opt *cabling.Options) (*plan.Expected, error) {
	s := a.startStage("plan")
	defer s.End()
	var plans []*plan.Plan
	var problems []plan.Problem
	for _, name := range names {
		data, err := a.readInput(name)
		if err != nil {
			return nil, err
		}
		if dump.Recognize(data).Info().Kind == dump.Topology {
			return nil, inputf("%s: a topology, want a plan; the policy's topology: expected: takes topologies", name)
		}
		p, odd, err := plan.Parse(name, data, plan.Options{Lenient: in.lenient})
		if err != nil {
			return nil, err
		}
		plans, problems = append(plans, p), append(problems, odd...)
	}
	e, err := plan.Bind(f, plan.Join(plans...), plan.Options{Lenient: in.lenient})
	if err != nil {
		return nil, err
	}
	e.Problems = append(problems, e.Problems...)
	problems = e.Problems
	a.listProblems(len(problems), in.lenient, func(i int) string { return fmt.Sprintf("%v", problems[i].Err) })
	opt.Expected, opt.Invented = e.Fabric, e.Invented
	return e, nil
}
