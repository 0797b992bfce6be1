// Linear's own client (npm @linear/sdk) at an address: says what came back, as one line of JSON.
// node linear_sdk.mjs SDK ADDRESS KEY TEAM LABEL
const [sdk, apiUrl, apiKey, teamId, labelId] = process.argv.slice(2);
const { LinearClient } = await import(sdk);
const client = new LinearClient({ apiKey, apiUrl });

const refusal = async (asked) => {
  try {
    await asked;
  } catch (error) {
    return { kind: error.constructor.name, type: error.type, message: error.message, reset: error.requestsResetAt };
  }
};

const limited = await refusal(client.archiveIssue("ENG-1"));
const made = await client.createIssue({ teamId, title: "New", labelIds: [labelId] });
const id = made.issueId;
const done = [
  made,
  await client.updateIssue(id, { priority: 2, removedLabelIds: [labelId] }),
  await client.issueAddLabel(id, labelId),
  await client.issueRemoveLabel(id, labelId),
  await client.createComment({ issueId: id, body: "Seen." }),
  await client.attachmentLinkURL(id, "https://example.org"),
  await client.archiveIssue(id),
];
const missing = await refusal(client.archiveIssue("ENG-99"));
const listed = await client.client.rawRequest(
  "query($filter: IssueFilter) { issues(filter: $filter, first: 1) { nodes { identifier } pageInfo { hasNextPage } } }",
  { filter: { team: { id: { eq: teamId } } } },
);
console.log(JSON.stringify({ limited, missing, done: done.map((one) => one.success), listed: listed.data.issues }));
