package report

import (
	"fmt"
	"hash/fnv"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/ibweave/ibweave/verify"
)

// The part of SARIF 2.1.0 (OASIS, sections 3.13 to 3.57) that findings need.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool      sarifTool       `json:"tool"`
		Calls     []sarifCall     `json:"invocations,omitempty"`
		Artifacts []sarifArtifact `json:"artifacts"`
		Results   []sarifResult   `json:"results"`
	}
	sarifCall struct {
		Successful bool          `json:"executionSuccessful"`
		Notes      []sarifNotice `json:"toolExecutionNotifications"`
	}
	sarifNotice struct {
		Level   string        `json:"level"`
		Message sarifText     `json:"message"`
		Rule    *sarifRuleRef `json:"associatedRule,omitempty"`
	}
	sarifRuleRef struct {
		ID string `json:"id"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name            string      `json:"name"`
		InformationURI  string      `json:"informationUri"`
		SemanticVersion string      `json:"version,omitempty"`
		Rules           []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string       `json:"id"`
		Short   sarifText    `json:"shortDescription"`
		Full    sarifText    `json:"fullDescription"`
		Help    sarifText    `json:"help"`
		Default sarifDefault `json:"defaultConfiguration"`
	}
	sarifDefault struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifArtifact struct {
		Location sarifURI `json:"location"`
	}
	sarifURI struct {
		URI string `json:"uri"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Kind         string             `json:"kind,omitempty"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		CodeFlows    []sarifCodeFlow    `json:"codeFlows,omitempty"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
		Properties   sarifProperties    `json:"properties"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Status        string `json:"status"`
		Justification string `json:"justification"`
	}
	sarifProperties struct {
		LID   int   `json:"lid"`
		Count int64 `json:"count"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
		Message  *sarifText     `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifURI    `json:"artifactLocation"`
		Region   sarifRegion `json:"region"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name      string `json:"name,omitempty"`
		Qualified string `json:"fullyQualifiedName"`
		Kind      string `json:"kind"`
	}
	sarifCodeFlow struct {
		ThreadFlows []sarifThreadFlow `json:"threadFlows"`
	}
	sarifThreadFlow struct {
		Locations []sarifStep `json:"locations"`
	}
	sarifStep struct {
		Location sarifLocation `json:"location"`
	}
)

const (
	sarifSchema = "https://json.schemastore.org/sarif-2.1.0.json"
	projectURI  = "https://github.com/ibweave/ibweave"
)

// What GitHub's code scanning takes of a run (Code scanning limits on SARIF results,
// and SARIF support for code scanning, docs.github.com).
const (
	maxResults     = 25_000 // more and the file is refused; the gravest come first
	maxSteps       = 1_000  // of a witness: more are not shown, from 10,000 on refused
	maxLogical     = 100    // of a location
	maxDescription = 1024   // characters; help has the whole text
)

// SARIF prints a result as a SARIF 2.1.0 log with one run. A finding is
// located in the file of tables, or where Options.Place says, and, by GUID, at its
// ports or its switch; its witness is a code flow, a step for each channel.
//
// There are three fingerprints: finding/v1 is equal for findings of the same rule about
// the same switch and LID. finding/v2 is the finding's own, which does not depend on
// LIDs, and so is primaryLocationLineHash, the only one that GitHub looks at.
//
// What is undecided is a result of the kind open, which stands for too little information
// to say whether there is a problem (3.27.9), and whose level must be none; since viewers
// may hide those, it is a notification of the run as well.
func SARIF(w io.Writer, r *verify.Result, opt Options) error {
	run := sarifRun{
		Tool:    sarifTool{Driver: sarifDriver{Name: "ibweave", InformationURI: projectURI, SemanticVersion: opt.Version}},
		Results: make([]sarifResult, 0, min(len(r.Findings), maxResults)),
	}
	for _, name := range []string{opt.Topology, opt.Tables} {
		if name != "" {
			run.Artifacts = append(run.Artifacts, sarifArtifact{sarifURI{fileURI(name)}})
		}
	}
	index := map[string]int{}
	for i, rule := range opt.rules() {
		index[rule.Name] = i
		text := strings.TrimSpace(rule.Explain)
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID:      rule.Name,
			Short:   sarifText{cut(rule.Summary)},
			Full:    sarifText{cut(text)},
			Help:    sarifText{text},
			Default: sarifDefault{rule.Severity.String()},
		})
	}
	var notices []sarifNotice
	for _, u := range r.Undecided {
		run.Results = append(run.Results, sarifUndecided(u, index, &opt))
		notices = append(notices, sarifNotice{"warning", sarifText{undecided(u)}, &sarifRuleRef{u.Rule}})
	}
	for i := range r.Findings {
		if len(run.Results) == maxResults {
			notices = append(notices, sarifNotice{"warning", sarifText{fmt.Sprintf("%d more findings are left out", len(r.Findings)-i)}, nil})
			break
		}
		run.Results = append(run.Results, sarifFinding(&r.Findings[i], index, &opt))
	}
	if notices != nil {
		run.Calls = []sarifCall{{true, notices}}
	}
	return viewerJSON(w, sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{run}})
}

// sarifUndecided is a rule that is undecided as a result. index is by rule.
func sarifUndecided(u verify.Undecided, index map[string]int, opt *Options) sarifResult {
	i, ok := index[u.Rule]
	if !ok {
		i = -1
	}
	print := undecidedPrint(u)
	return sarifResult{
		RuleID: u.Rule, RuleIndex: i, Kind: "open", Level: "none", Message: sarifText{undecided(u)},
		Locations:    []sarifLocation{{Physical: &sarifPhysical{sarifURI{fileURI(opt.subject())}, sarifRegion{1}}}},
		Fingerprints: map[string]string{"finding/v1": print, "finding/v2": print, "primaryLocationLineHash": print + ":1"},
	}
}

// sarifFinding is a finding as a result. index is by rule.
func sarifFinding(f *verify.Finding, index map[string]int, opt *Options) sarifResult {
	file, line := opt.place(f)
	at := sarifLocation{Physical: &sarifPhysical{sarifURI{fileURI(file)}, sarifRegion{line}}}
	switch {
	case len(f.Ports) > 0 && f.LID == 0:
		for _, e := range f.Ports[:min(len(f.Ports), maxLogical)] {
			qualified := e.Node.String()
			if e.Port != 0 {
				qualified += fmt.Sprintf("/%d", e.Port)
			}
			name := e.Name.Text
			if e.Label != "" { // for the technician; GUID and number are beside it
				name = e.String()
			}
			at.Logical = append(at.Logical, sarifLogical{Name: name, Qualified: qualified, Kind: "resource"})
		}
	case f.Switch != 0:
		at.Logical = []sarifLogical{{Qualified: f.Switch.String(), Kind: "resource"}}
	}
	result := sarifResult{
		RuleID: f.Rule, RuleIndex: index[f.Rule], Level: f.Severity.String(),
		Message: sarifText{f.Message}, Locations: []sarifLocation{at},
		Fingerprints: map[string]string{"finding/v1": fingerprint(f)},
		Properties:   sarifProperties{LID: int(f.LID), Count: f.Count},
	}
	if f.Fingerprint != "" {
		result.Fingerprints["finding/v2"] = f.Fingerprint
		result.Fingerprints["primaryLocationLineHash"] = f.Fingerprint + ":1"
	}
	if f.Waiver != nil {
		result.Suppressions = []sarifSuppression{{"external", "accepted", fmt.Sprintf("until %s: %s", f.Waiver.Until, f.Waiver.Reason)}}
	}
	var steps []sarifStep
	for _, h := range f.Witness[:min(len(f.Witness), maxSteps)] {
		text := fmt.Sprintf("%s port %d VL %d", h, h.Port, h.VL)
		if h.LID != 0 {
			text += fmt.Sprintf(", to LID %d", h.LID)
		}
		steps = append(steps, sarifStep{sarifLocation{
			Logical: []sarifLogical{{Name: h.Name.Text, Qualified: fmt.Sprintf("%s/%d", h.Switch, h.Port), Kind: "resource"}},
			Message: &sarifText{text},
		}})
	}
	if steps != nil {
		result.CodeFlows = []sarifCodeFlow{{[]sarifThreadFlow{{steps}}}}
	}
	return result
}

// cut shortens a description to what viewers take, at a blank.
func cut(s string) string {
	if len(s) <= maxDescription {
		return s
	}
	s = s[:maxDescription-len(" ...")]
	return s[:strings.LastIndexAny(s, " \n")] + " ..."
}

// fingerprint names a finding across runs.
func fingerprint(f *verify.Finding) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %s %d", f.Rule, f.Switch, f.LID)
	if f.Switch == 0 && f.LID == 0 {
		for _, hop := range f.Witness {
			fmt.Fprintf(h, " %s/%d/%d", hop.Switch, hop.Port, hop.VL)
		}
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// undecidedPrint names what is undecided across runs.
func undecidedPrint(u verify.Undecided) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "undecided %s %s", u.Rule, u.Reason)
	return fmt.Sprintf("%016x", h.Sum64())
}

// fileURI is a file name as a URI reference.
func fileURI(name string) string {
	u := url.URL{Path: filepath.ToSlash(name)}
	if filepath.IsAbs(name) {
		u.Scheme = "file"
	}
	return u.String()
}
