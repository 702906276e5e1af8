/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The commands of socksteer: what each is called, what it takes, and what its help says. A command
 * reads its options, calls the floors below and prints the result on standard output; what went
 * wrong it leaves in *failure, which main prints. Nothing here knows how steering works.
 */
#ifndef SOCKSTEER_CLI_CLI_H
#define SOCKSTEER_CLI_CLI_H

#include "base/failure.h"
#include "base/version.h"
#include "steering/attach.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct command {
	const char *name;
	const char *usage; /* what comes after the name, "" for nothing */
	const char *summary; /* one line of the overview */
	/* The parts of the help, each with a newline at its end; what commands share is added. */
	const char *help; /* what it does */
	const char *option_help; /* its own options, NULL for none */
	const char *more; /* exit codes where they matter, and examples */
	unsigned int options; /* enum option_set, from cli/options.h */
	size_t min_arguments; /* besides options */
	size_t max_arguments;
	bool takes_group; /* the first argument is a GROUP; it has --pid and --netns */
	bool takes_worker; /* the second argument is a WORKER */
	bool lists_policies; /* the help names all policies */
	bool lists_settings; /* the help names all keys of set */
	/* argv[0] is the command's name. 0 or -errno with *failure filled, if a reason is known. */
	int (*run)(int argc, char **argv, struct failure *failure);
};

/* In the order of the overview; the last one has no name. */
extern const struct command commands[];

/* NULL without a command of that name. */
const struct command *command_find(const char *name);

/* Runs a whole command line. 0, or -errno with *failure filled and a code other than EXIT_DONE. */
int cli_run(int argc, char **argv, struct failure *failure);

int command_list(int argc, char **argv, struct failure *failure);
int command_attach(int argc, char **argv, struct failure *failure);
int command_detach(int argc, char **argv, struct failure *failure);
int command_status(int argc, char **argv, struct failure *failure);
int command_metrics(int argc, char **argv, struct failure *failure);
int command_policy(int argc, char **argv, struct failure *failure);
int command_set(int argc, char **argv, struct failure *failure);
int command_drain(int argc, char **argv, struct failure *failure);
int command_resume(int argc, char **argv, struct failure *failure);
int command_weight(int argc, char **argv, struct failure *failure);
int command_rescue(int argc, char **argv, struct failure *failure);
int command_audit(int argc, char **argv, struct failure *failure);
int command_top(int argc, char **argv, struct failure *failure);
int command_events(int argc, char **argv, struct failure *failure);
int command_run(int argc, char **argv, struct failure *failure);
int command_version(int argc, char **argv, struct failure *failure);
int command_help(int argc, char **argv, struct failure *failure);

extern const char list_help[], list_option_help[], list_more[];
extern const char attach_help[], attach_option_help[], attach_more[];
extern const char detach_help[], detach_option_help[], detach_more[];
extern const char status_help[], status_option_help[], status_more[];
extern const char metrics_help[], metrics_more[];
extern const char policy_help[], policy_more[];
extern const char set_help[], set_option_help[], set_more[];
extern const char drain_help[], drain_option_help[], drain_more[];
extern const char resume_help[], resume_more[];
extern const char weight_help[], weight_more[];
extern const char rescue_help[], rescue_option_help[], rescue_more[];
extern const char audit_help[], audit_option_help[], audit_more[];
extern const char top_help[], top_option_help[], top_more[];
extern const char events_help[], events_option_help[], events_more[];
extern const char run_help[], run_option_help[], run_more[];
extern const char version_help[], version_more[];
extern const char help_help[], help_more[];

/* The help of one command, and the overview of all. */
void help_print_command(const struct command *command, FILE *out);
void help_print_overview(FILE *out);

/* What a successful attach says: to out what was done, to notes what this kernel does not give. */
void attach_report_print(const struct attach_report *report, enum policy policy, FILE *out,
			 FILE *notes);

#endif
