// Command judge says for each fabric whether an engine of OpenSM beats one of ours, and how
// far our engines are from the best of all: judge [flags] FABRIC..
//
// It runs ibweave compare, and so OpenSM on ibsim. An engine of OpenSM counts if its tables
// deliver all pairs without credit loops on no more lanes than ours. It beats ours if it is
// better in bandwidth without a greater all-to-all load, or has less load without being worse
// in bandwidth. Bandwidths are compared bisection by bisection: better is 0.5 points or more,
// surely.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// standings is what is needed of the JSON of compare.
type standings struct {
	Contenders []contender
}

type contender struct {
	Name    string
	Refused string
	Verify  struct {
		Unicast     struct{ Unreachable, Loops int64 }
		CreditLoops struct{ Count, VLs int } `json:"credit_loops"`
	}
	Quality struct {
		AllToAll  float64 `json:"all_to_all"`
		Bisection struct{ Mean float64 }
	}
	Difference struct {
		Mean    float64
		Verdict string
	}
}

func main() {
	program := flag.String("ibweave", "bin/ibweave", "`program`")
	ours := flag.String("e", "layered,updn,fattree,minhop", "our `engines`; the first is judged")
	theirs := flag.String("opensm", "minhop,updn,ftree,dfsssp,nue,lash", "`engines` of OpenSM")
	bisections := flag.Int("bisections", 10000, "random bisections")
	flag.Parse()
	engines := strings.Split(*ours, ",")
	for name := range strings.SplitSeq(*theirs, ",") {
		engines = append(engines, "opensm:"+name)
	}
	beaten, failed := 0, 0
	for _, file := range flag.Args() {
		s, err := compare(*program, file, engines, *bisections)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			failed++
			continue
		}
		if s.print(file) {
			beaten++
		}
	}
	fmt.Printf("%d fabrics, beaten on %d, %d not measured\n", flag.NArg(), beaten, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

// compare measures all engines.
func compare(program, file string, engines []string, bisections int) (*standings, error) {
	cmd := exec.CommandContext(context.Background(), program, "compare", "-t", file, "-e", strings.Join(engines, ","), "--format", "json",
		"--bisections", strconv.Itoa(bisections), "--permutations", "0", "--shifts", "0", "--hottest", "0", "--fail-on", "never", "--lenient")
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, complaint.Bytes())
	}
	var s standings
	return &s, json.Unmarshal(out.Bytes(), &s)
}

// delivers says whether all pairs are delivered without credit loops.
func (x *contender) delivers() bool {
	return x.Refused == "" && x.Verify.Unicast.Unreachable+x.Verify.Unicast.Loops == 0 && x.Verify.CreditLoops.Count == 0
}

// beats says whether x is better than the one that is judged, to which its difference is.
func (x *contender) beats(judged *contender) bool {
	if !x.delivers() || x.Verify.CreditLoops.VLs > judged.Verify.CreditLoops.VLs {
		return false
	}
	load, other := x.Quality.AllToAll, judged.Quality.AllToAll
	return x.Difference.Verdict == "better" && load <= other || load < other && x.Difference.Verdict != "worse"
}

// print writes a line for each engine. It says whether the first is beaten.
func (s *standings) print(file string) (beaten bool) {
	fmt.Println(strings.TrimSuffix(filepath.Base(file), ".txt"))
	judged := &s.Contenders[0]
	load, bandwidth := 0.0, 0.0
	for i := range s.Contenders {
		if x := &s.Contenders[i]; x.delivers() {
			bandwidth = max(bandwidth, x.Quality.Bisection.Mean)
			if load == 0 || x.Quality.AllToAll < load {
				load = x.Quality.AllToAll
			}
		}
	}
	for i := range s.Contenders {
		x := &s.Contenders[i]
		if x.Refused != "" {
			fmt.Printf("  %-15s %.60s\n", x.Name, x.Refused)
			continue
		}
		q := &x.Quality
		fmt.Printf("  %-15s load %9.1f (%+6.1f %%)  bandwidth %5.2f %% (%+5.2f points)", x.Name, q.AllToAll, 100*(q.AllToAll-load)/max(load, 1),
			100*q.Bisection.Mean, 100*(q.Bisection.Mean-bandwidth))
		if v := &x.Verify; !x.delivers() {
			fmt.Printf("  lost %d, credit loops %d", v.Unicast.Unreachable+v.Unicast.Loops, v.CreditLoops.Count)
		} else if strings.HasPrefix(x.Name, "opensm:") && judged.Refused == "" && x.beats(judged) {
			beaten = true
			fmt.Print("  BEATS ", judged.Name)
		}
		fmt.Println()
	}
	return beaten
}
