/*
 * recover.h: what a run that was killed has left as .part files becomes whole files.
 */
#ifndef PCAP_RECOVER_H
#define PCAP_RECOVER_H

#include "file.h"

/*
 * Cuts each .part file that the node's path may have made, and that no process is writing, to its
 * last whole record, and gives it its name.  Main thread, before the writer starts.
 */
void recover_files(struct site *site);

#endif
