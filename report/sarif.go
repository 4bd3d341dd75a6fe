package report

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// object is a JSON object. Its members are written in the order of their names.
type object = map[string]any

const (
	sarifSchema = "https://json.schemastore.org/sarif-2.1.0.json"
	projectURI  = "https://github.com/ibweave/ibweave"
)

// Limits of a run in GitHub's code scanning (Code scanning limits on SARIF results, and SARIF
// support for code scanning, docs.github.com).
const (
	maxResults     = 25_000 // of a run: files with more are refused; the gravest come first
	maxSteps       = 1_000  // of a witness: more are not shown, from 10,000 the file is refused
	maxLogical     = 100    // locations of a finding
	maxDescription = 1024   // characters; help has the whole text
)

// SARIF prints a result as a SARIF 2.1.0 log with one run. A finding is located in the file of
// tables, or as Options.Place says, and by GUID at its ports or switch. Its witness is a code
// flow with a step for each channel.
//
// There are three fingerprints. finding/v1 is equal for findings of one rule about the same
// switch and LID. finding/v2 is the finding's own, which does not depend on LIDs;
// primaryLocationLineHash, the only one that GitHub uses, is made from it.
//
// An undecided rule is a result of the kind open, which means too little information to find a
// problem (3.27.9); its level must be none. Since viewers may hide that, the run has a
// notification as well.
func SARIF(w io.Writer, r *verify.Result, opt Options) error {
	artifacts, rules, results := []object{}, []object{}, []object{}
	for _, name := range []string{opt.Topology, opt.Tables} {
		if name != "" {
			artifacts = append(artifacts, object{"location": object{"uri": fileURI(name)}})
		}
	}
	index := map[string]int{}
	for i, rule := range opt.rules() {
		index[rule.Name] = i
		explain := strings.TrimSpace(rule.Explain)
		rules = append(rules, object{
			"id":                   rule.Name,
			"shortDescription":     object{"text": cut(rule.Summary)},
			"fullDescription":      object{"text": cut(explain)},
			"help":                 object{"text": explain},
			"defaultConfiguration": object{"level": rule.Severity.String()},
		})
	}
	var notices []object
	for _, u := range r.Undecided {
		message := object{"text": undecided(u)}
		results = append(results, sarifUndecided(u, message, index, &opt))
		notices = append(notices, object{"level": "warning", "message": message, "associatedRule": object{"id": u.Rule}})
	}
	for i := range r.Findings {
		if len(results) == maxResults {
			message := object{"text": fmt.Sprintf("%d more findings are left out", len(r.Findings)-i)}
			notices = append(notices, object{"level": "warning", "message": message})
			break
		}
		results = append(results, sarifFinding(&r.Findings[i], index, &opt))
	}
	driver := object{"name": "ibweave", "informationUri": projectURI, "rules": rules}
	if opt.Version != "" {
		driver["version"] = opt.Version
	}
	run := object{"tool": object{"driver": driver}, "artifacts": artifacts, "results": results}
	if notices != nil {
		run["invocations"] = []object{{"executionSuccessful": true, "toolExecutionNotifications": notices}}
	}
	var b bytes.Buffer
	if err := JSON(&b, object{"$schema": sarifSchema, "version": "2.1.0", "runs": []object{run}}); err != nil {
		return err
	}
	_, err := w.Write(text.PrintableJSON(b.Bytes())) // viewers do not escape strings
	return err
}

// sarifUndecided returns an undecided rule as a result. index gives the index of rules by name.
func sarifUndecided(u verify.Undecided, message object, index map[string]int, opt *Options) object {
	i, ok := index[u.Rule]
	if !ok {
		i = -1
	}
	print := hashOf("undecided %s %s", u.Rule, u.Reason) // does not differ between runs
	return object{
		"ruleId": u.Rule, "ruleIndex": i, "kind": "open", "level": "none", "message": message,
		"locations":           []object{{"physicalLocation": physical(opt.subject(), 1)}},
		"partialFingerprints": object{"finding/v1": print, "finding/v2": print, "primaryLocationLineHash": print + ":1"},
		"properties":          object{"lid": 0, "count": 0},
	}
}

// physical returns a location: a line of a file.
func physical(file string, line int) object {
	return object{"artifactLocation": object{"uri": fileURI(file)}, "region": object{"startLine": line}}
}

// logical returns a switch or port, named by GUID and number; name may be "".
func logical(name, qualified string) object {
	at := object{"fullyQualifiedName": qualified, "kind": "resource"}
	if name != "" {
		at["name"] = name
	}
	return at
}

// sarifFinding returns a finding as a result. index gives the index of rules by name.
func sarifFinding(f *verify.Finding, index map[string]int, opt *Options) object {
	var where []object
	switch {
	case len(f.Ports) > 0 && f.LID == 0:
		for _, e := range f.Ports[:min(len(f.Ports), maxLogical)] {
			qualified := e.Node.String()
			if e.Port != 0 {
				qualified += fmt.Sprintf("/%d", e.Port)
			}
			name := e.Name.Text
			if e.Label != "" { // the port's label; GUID and number are in qualified
				name = e.String()
			}
			where = append(where, logical(name, qualified))
		}
	case f.Switch != 0:
		where = []object{logical("", f.Switch.String())}
	}
	at := object{"physicalLocation": physical(opt.place(f))}
	if where != nil {
		at["logicalLocations"] = where
	}
	path := ""
	if f.Switch == 0 && f.LID == 0 {
		for _, hop := range f.Witness {
			path += fmt.Sprintf(" %s/%d/%d", hop.Switch, hop.Port, hop.VL)
		}
	}
	prints := object{"finding/v1": hashOf("%s %s %d%s", f.Rule, f.Switch, f.LID, path)}
	if f.Fingerprint != "" {
		prints["finding/v2"], prints["primaryLocationLineHash"] = f.Fingerprint, f.Fingerprint+":1"
	}
	result := object{
		"ruleId": f.Rule, "ruleIndex": index[f.Rule], "level": f.Severity.String(), "message": object{"text": f.Message},
		"locations": []object{at}, "partialFingerprints": prints,
		"properties": object{"lid": f.LID, "count": f.Count},
	}
	if f.Cause != "" {
		result["properties"] = object{"lid": f.LID, "count": f.Count, "cause": f.Cause}
	}
	if f.Waiver != nil {
		why := fmt.Sprintf("until %s: %s", f.Waiver.Until, f.Waiver.Reason)
		result["suppressions"] = []object{{"kind": "external", "status": "accepted", "justification": why}}
	}
	var steps []object
	for _, h := range f.Witness[:min(len(f.Witness), maxSteps)] {
		text := fmt.Sprintf("%s port %d VL %d", h, h.Port, h.VL)
		if h.LID != 0 {
			text += fmt.Sprintf(", to LID %d", h.LID)
		}
		steps = append(steps, object{"location": object{
			"logicalLocations": []object{logical(h.Name.Text, fmt.Sprintf("%s/%d", h.Switch, h.Port))},
			"message":          object{"text": text},
		}})
	}
	if steps != nil {
		result["codeFlows"] = []object{{"threadFlows": []object{{"locations": steps}}}}
	}
	return result
}

// cut shortens a description at a blank to maxDescription.
func cut(s string) string {
	if len(s) <= maxDescription {
		return s
	}
	s = s[:maxDescription-len(" ...")]
	return s[:strings.LastIndexAny(s, " \n")] + " ..."
}

// hashOf returns the hash of a text in hexadecimal.
func hashOf(format string, args ...any) string {
	h := fnv.New64a()
	fmt.Fprintf(h, format, args...)
	return fmt.Sprintf("%016x", h.Sum64())
}

// fileURI returns a file name as a URI reference.
func fileURI(name string) string {
	u := url.URL{Path: filepath.ToSlash(name)}
	if filepath.IsAbs(name) {
		u.Scheme = "file"
	}
	return u.String()
}
