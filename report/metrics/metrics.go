// Package metrics writes results as metrics of Prometheus, in the text form that
// node_exporter's textfile collector reads. It makes no promise to other modules.
//
// Metrics are the numbers of a command's JSON document, named after its members:
// unicast.unreachable of check is ibweave_check_unicast_unreachable. So they are as stable as
// the document. Members of lists are left out, with two exceptions: findings are counted by
// rule and severity, and groups of hosts have their texts as labels.
package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// Verdicts are the values of the label verdict, the best first.
var Verdicts = []string{"clean", "warnings", "undecided", "errors"}

// Write writes the numbers of a document, which must marshal to a JSON object, as metrics.
// Their names begin with ibweave and the command. Metrics that end in _total are counters,
// others gauges.
func Write(w io.Writer, command string, document any) error {
	data, err := json.Marshal(document)
	if err != nil {
		return err
	}
	var members map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // keeps the digits
	if err := d.Decode(&members); err != nil {
		return err
	}
	p := &printer{command: command}
	p.object(nil, members)
	_, err = w.Write(p.Bytes())
	return err
}

// printer collects the text of metrics.
type printer struct {
	bytes.Buffer
	command string
}

// object writes the members of an object, sorted by name.
func (p *printer) object(path []string, members map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		at := append(slices.Clone(path), name)
		switch v := members[name].(type) {
		case map[string]any:
			if name == "hop_histogram" {
				p.hops(path, v)
			} else {
				p.object(at, v)
			}
		case json.Number:
			p.gauge(at, v.String())
		case bool:
			p.gauge(at, map[bool]string{false: "0", true: "1"}[v])
		case []any:
			if len(path) == 0 && name == "findings" {
				p.findings(v)
			}
			if name == "host_groups" {
				p.groups(append(slices.Clone(path), "host_group"), v)
			}
		case string:
			if len(path) == 0 && name == "verdict" {
				lines := text.Each(Verdicts, func(w string) string { return fmt.Sprintf("{verdict=%q} %d", w, map[bool]int{true: 1}[w == v]) })
				p.metric(p.metricName([]string{"verdict"}), "Verdict of ibweave "+p.command+": 1 for the one that holds.", lines...)
			}
		}
	}
	if len(path) == 0 {
		p.info(members)
	}
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// labels returns the texts of an object as labels, sorted by name.
func labels(members map[string]any) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if v, ok := members[name].(string); ok {
			list = append(list, name+`="`+labelEscapes.Replace(fabric.Printable(v))+`"`)
		}
	}
	return list
}

// info writes a metric with the texts of the document as labels.
func (p *printer) info(members map[string]any) {
	members = maps.Clone(members)
	maps.DeleteFunc(members, func(name string, v any) bool { return name == "verdict" || v == "" })
	if list := labels(members); list != nil {
		p.metric(p.metricName([]string{"info"}), "Texts of the document.", "{"+strings.Join(list, ",")+"} 1")
	}
}

// metricName returns the name of a member's metric. promtool reserves the last words count, sum
// and bucket for other types: members with such names get the name of the object they are in.
func (p *printer) metricName(path []string) string {
	words := slices.Clone(path)
	if n := len(words); n > 1 && slices.Contains([]string{"count", "sum", "bucket"}, words[n-1]) {
		words = words[:n-1]
	}
	return "ibweave_" + p.command + "_" + strings.Join(words, "_")
}

// metric writes a metric's help and type, and its lines: labels, if any, and a value.
func (p *printer) metric(name, help string, lines ...string) {
	kind := "gauge"
	if strings.HasSuffix(name, "_total") {
		kind = "counter"
	}
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	for _, line := range lines {
		p.WriteString(name + line + "\n")
	}
}

// gauge writes the metric of a number.
func (p *printer) gauge(path []string, value string) {
	p.metric(p.metricName(path), fmt.Sprintf("Member %s of the document of ibweave %s.", strings.Join(path, "."), p.command), " "+value)
}

// hops writes the numbers of pairs by how many switches they pass.
func (p *printer) hops(path []string, members map[string]any) {
	lines := text.Each(slices.SortedFunc(maps.Keys(members), text.Natural), func(n string) string { return fmt.Sprintf("{hops=%q} %v", n, members[n]) })
	p.metric(p.metricName(append(slices.Clone(path), "pairs_by_hops")), "Delivered pairs by the switches that they pass.", lines...)
}

// findings counts findings by rule and severity, whose names need no escapes.
func (p *printer) findings(list []any) {
	counts := make(map[[2]string]int)
	for _, x := range list {
		finding, _ := x.(map[string]any)
		rule, _ := finding["rule"].(string)
		severity, _ := finding["severity"].(string)
		counts[[2]string{rule, severity}]++
	}
	var lines []string
	for k, n := range counts {
		lines = append(lines, fmt.Sprintf("{rule=%q,severity=%q} %d", k[0], k[1], n))
	}
	slices.Sort(lines)
	p.metric(p.metricName([]string{"findings"}), "Findings of ibweave "+p.command+" by rule and severity.", lines...)
}

// groups writes the numbers in a list of objects, with their texts as labels, also the numbers
// in lists inside these objects.
func (p *printer) groups(path []string, list []any) {
	lines := make(map[string][]string) // by metric
	var add func(path, above []string, list []any)
	add = func(path, above []string, list []any) {
		for _, x := range list {
			members, _ := x.(map[string]any)
			own := slices.Concat(above, labels(members))
			for name, v := range members {
				at := append(slices.Clone(path), name)
				switch v := v.(type) {
				case json.Number:
					metric := p.metricName(at)
					lines[metric] = append(lines[metric], fmt.Sprintf("{%s} %s", strings.Join(own, ","), v))
				case []any:
					add(at, own, v)
				}
			}
		}
	}
	add(path, nil, list)
	for _, metric := range slices.Sorted(maps.Keys(lines)) {
		p.metric(metric, fmt.Sprintf("By groups of hosts, of the document of ibweave %s.", p.command), lines[metric]...)
	}
}
