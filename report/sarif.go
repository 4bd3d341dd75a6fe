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
		Artifacts []sarifArtifact `json:"artifacts"`
		Results   []sarifResult   `json:"results"`
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
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		CodeFlows    []sarifCodeFlow   `json:"codeFlows,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints"`
		Properties   sarifProperties   `json:"properties"`
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
		Artifact sarifURI `json:"artifactLocation"`
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

// SARIF prints a result as a SARIF 2.1.0 log with one run. A finding is
// located in the file of tables and, by GUID, at its switch; its witness is a
// code flow, a step for each channel. Fingerprints are equal for findings of
// the same rule about the same switch and LID.
func SARIF(w io.Writer, r *verify.Result, opt Options) error {
	run := sarifRun{
		Tool:      sarifTool{Driver: sarifDriver{Name: "ibweave", InformationURI: projectURI, SemanticVersion: opt.Version}},
		Artifacts: []sarifArtifact{{sarifURI{fileURI(opt.Topology)}}, {sarifURI{fileURI(opt.Tables)}}},
		Results:   make([]sarifResult, 0, len(r.Findings)),
	}
	index := map[string]int{}
	for i, rule := range verify.Rules {
		index[rule.Name] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID:      rule.Name,
			Short:   sarifText{rule.Summary},
			Full:    sarifText{strings.TrimSpace(rule.Explain)},
			Default: sarifDefault{rule.Severity.String()},
		})
	}
	tables := &sarifPhysical{sarifURI{fileURI(opt.Tables)}}
	for i := range r.Findings {
		f := &r.Findings[i]
		at := sarifLocation{Physical: tables}
		if f.Switch != 0 {
			at.Logical = []sarifLogical{{Qualified: f.Switch.String(), Kind: "resource"}}
		}
		result := sarifResult{
			RuleID: f.Rule, RuleIndex: index[f.Rule], Level: f.Severity.String(),
			Message: sarifText{f.Message}, Locations: []sarifLocation{at},
			Fingerprints: map[string]string{"finding/v1": fingerprint(f)},
			Properties:   sarifProperties{LID: int(f.LID), Count: f.Count},
		}
		if len(f.Witness) > 0 {
			var steps []sarifStep
			for _, h := range f.Witness {
				text := fmt.Sprintf("%s port %d VL %d", h, h.Port, h.VL)
				if h.LID != 0 {
					text += fmt.Sprintf(", to LID %d", h.LID)
				}
				steps = append(steps, sarifStep{sarifLocation{
					Logical: []sarifLogical{{Name: h.Name, Qualified: fmt.Sprintf("%s/%d", h.Switch, h.Port), Kind: "resource"}},
					Message: &sarifText{text},
				}})
			}
			result.CodeFlows = []sarifCodeFlow{{[]sarifThreadFlow{{steps}}}}
		}
		run.Results = append(run.Results, result)
	}
	return JSON(w, sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{run}})
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

// fileURI is a file name as a URI reference.
func fileURI(name string) string {
	u := url.URL{Path: filepath.ToSlash(name)}
	if filepath.IsAbs(name) {
		u.Scheme = "file"
	}
	return u.String()
}
