// Checks notes and proofs of a Palyra journal with the packages of Go's checksum database.
//
// Reads one JSON object from standard input, and writes the problem of each case, empty if it holds.
package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type Checkpoint struct {
	Note string `json:"note"`
	Key  string `json:"key"`
}

type Proof struct {
	// Of an inclusion: the index of the leaf. Of a consistency: the older size.
	Old  int64    `json:"old"`
	Size int64    `json:"size"`
	Leaf string   `json:"leaf"`
	Root string   `json:"root"`
	Path []string `json:"path"`
}

type Cases struct {
	Checkpoints   []Checkpoint `json:"checkpoints"`
	Inclusions    []Proof      `json:"inclusions"`
	Consistencies []Proof      `json:"consistencies"`
	// A private key, and the text to sign with it.
	Signer string `json:"signer"`
	Text   string `json:"text"`
}

type Opened struct {
	Problem string `json:"problem"`
	Origin  string `json:"origin"`
	Size    int64  `json:"size"`
	Root    string `json:"root"`
}

type Results struct {
	Checkpoints   []Opened `json:"checkpoints"`
	Inclusions    []string `json:"inclusions"`
	Consistencies []string `json:"consistencies"`
	Signed        string   `json:"signed"`
}

func main() {
	var cases Cases
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	results := Results{}
	for _, each := range cases.Checkpoints {
		results.Checkpoints = append(results.Checkpoints, open(each))
	}
	for _, each := range cases.Inclusions {
		results.Inclusions = append(results.Inclusions, problem(included(each)))
	}
	for _, each := range cases.Consistencies {
		results.Consistencies = append(results.Consistencies, problem(consistent(each)))
	}
	if cases.Signer != "" {
		signer, err := note.NewSigner(cases.Signer)
		if err == nil {
			var signed []byte
			signed, err = note.Sign(&note.Note{Text: cases.Text}, signer)
			results.Signed = string(signed)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		os.Exit(2)
	}
}

func problem(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func open(given Checkpoint) Opened {
	verifier, err := note.NewVerifier(given.Key)
	if err != nil {
		return Opened{Problem: err.Error()}
	}
	read, err := note.Open([]byte(given.Note), note.VerifierList(verifier))
	if err != nil {
		return Opened{Problem: err.Error()}
	}
	lines := strings.Split(read.Text, "\n")
	if len(lines) < 3 {
		return Opened{Problem: "no checkpoint"}
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return Opened{Problem: err.Error()}
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil {
		return Opened{Problem: err.Error()}
	}
	return Opened{Origin: lines[0], Size: size, Root: hex.EncodeToString(root)}
}

func included(given Proof) error {
	root, leaf, path, err := decoded(given)
	if err != nil {
		return err
	}
	return tlog.CheckRecord(tlog.RecordProof(path), given.Size, root, given.Old, leaf)
}

func consistent(given Proof) error {
	root, old, path, err := decoded(given)
	if err != nil {
		return err
	}
	return tlog.CheckTree(tlog.TreeProof(path), given.Size, root, given.Old, old)
}

func decoded(given Proof) (root, leaf tlog.Hash, path []tlog.Hash, err error) {
	if root, err = hash(given.Root); err != nil {
		return
	}
	if leaf, err = hash(given.Leaf); err != nil {
		return
	}
	for _, each := range given.Path {
		var step tlog.Hash
		if step, err = hash(each); err != nil {
			return
		}
		path = append(path, step)
	}
	return
}

func hash(text string) (found tlog.Hash, err error) {
	raw, err := hex.DecodeString(text)
	if err == nil && len(raw) != len(found) {
		err = fmt.Errorf("a hash has %d bytes, not %d", len(found), len(raw))
	}
	copy(found[:], raw)
	return
}
